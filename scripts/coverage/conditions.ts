import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";

/** The folder for a build's conditions, a file a source. Hardhat stores the hits. */
const FOLDER = new URL("../../coverage/conditions/", import.meta.url);

/** A decision of a contract: an operand of `&&` or `||`, or the condition of an `if`, a loop or a `?:`. */
interface Condition {
  readonly source: string;
  readonly line: number;
  readonly text: string;
  /** Hardhat's records of true and of false: 32 bytes as hex. */
  readonly tags: { readonly true: string; readonly false: string };
}

interface Node {
  readonly nodeType: string;
  readonly src: string;
  readonly [property: string]: unknown;
}

/**
 * Solidity source in which every condition reports its value, in addition to Hardhat's own instrumentation. Yul inside
 * assembly blocks cannot report, and stays unchanged.
 *
 * @param instrumented - the source with Hardhat's instrumentation, whose library it uses
 * @param original - the original source, for lines
 */
export async function instrumentConditions(name: string, instrumented: string, original: string): Promise<string> {
  const bytes = Buffer.from(instrumented);
  const lines = conditionsOf(original).map(({ start }) => lineAt(Buffer.from(original), start));
  const conditions: Condition[] = [];
  let [result, from] = ["", 0];
  for (const [i, { start, end }] of conditionsOf(instrumented).entries()) {
    const text = bytes.subarray(start, end).toString();
    const hash = createHash("sha256").update(`${name}#${i}`).digest("hex").slice(0, 63);
    const tags = { true: `${hash}1`, false: `${hash}0` };
    conditions.push({ source: name, line: lines[i] ?? 0, text: text.replaceAll(/\s+/g, " "), tags });
    result += `${bytes.subarray(from, start)}__seen(${text}, 0x${tags.false})`;
    from = end;
  }
  if (conditions.length === 0) return instrumented;
  await mkdir(FOLDER, { recursive: true });
  await writeFile(new URL(`${name.replaceAll("/", ".")}.json`, FOLDER), JSON.stringify(conditions));
  return `${result}${bytes.subarray(from)}
function __seen(bool value, uint256 tag) pure returns (bool) {
  __NomicFoundationCoverage.sendHit(value ? tag | 1 : tag);
  return value;
}\n`;
}

/** All conditions of the last build. Sources that were moved or deleted since do not count. */
export async function readConditions(): Promise<Condition[]> {
  const names = (await readdir(FOLDER)).sort();
  const texts = await Promise.all(names.map((name) => readFile(new URL(name, FOLDER), "utf8")));
  const conditions = texts.flatMap((text) => JSON.parse(text) as Condition[]);
  return conditions.filter(({ source }) => existsSync(new URL(`../../${source}`, import.meta.url)));
}

/** Byte ranges of a source's conditions, in order and without overlap. */
function conditionsOf(source: string): { readonly start: number; readonly end: number }[] {
  const leaves: Node[] = [];
  visit(parse(source), leaves);
  return leaves
    .map(({ src }) => src.split(":").map(Number))
    .map(([start = 0, length = 0]) => ({ start, end: start + length }))
    .sort((a, b) => a.start - b.start)
    .filter(({ start }, i, all) => i === 0 || start >= (all[i - 1]?.end ?? 0));
}

function visit(value: unknown, leaves: Node[]): void {
  if (Array.isArray(value)) for (const item of value) visit(item, leaves);
  else if (isNode(value)) {
    if (["IfStatement", "Conditional", "ForStatement", "WhileStatement"].includes(value.nodeType)) {
      if (isNode(value.condition)) addOperands(value.condition, leaves);
    } else if (isLogical(value)) addOperands(value, leaves);
    for (const property of Object.values(value)) visit(property, leaves);
  }
}

function addOperands(node: Node, leaves: Node[]): void {
  if (isLogical(node))
    for (const side of [node.leftExpression, node.rightExpression]) addOperands(side as Node, leaves);
  else if (node.nodeType === "TupleExpression") addOperands((node.components as Node[])[0] as Node, leaves);
  else leaves.push(node);
}

function isLogical({ nodeType, operator }: Node): boolean {
  return nodeType === "BinaryOperation" && (operator === "&&" || operator === "||");
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "nodeType" in value;
}

function parse(source: string): unknown {
  const solc = createRequire(import.meta.url)("solc") as { compile(input: string): string };
  const settings = { stopAfter: "parsing", outputSelection: { "*": { "": ["ast"] } } };
  const input = { language: "Solidity", sources: { source: { content: source } }, settings };
  const output = JSON.parse(solc.compile(JSON.stringify(input))) as { sources: { source?: { ast?: unknown } } };
  const ast = output.sources.source?.ast;
  if (ast === undefined) throw new Error("the compiler could not parse an instrumented source");
  return ast;
}

function lineAt(bytes: Buffer, offset: number): number {
  return bytes.subarray(0, offset).toString().split("\n").length;
}
