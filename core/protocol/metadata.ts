import { isVisible, NOT_HIDDEN } from "./text.ts";

/**
 * The form of metadata that wallets and marketplaces read: JSON of a token (ERC-721, ERC-1155) or
 * of a whole contract (ERC-7572). Fields that those standards do not name pass unchanged.
 */

/** Most bytes of one token's or contract's metadata, as JSON in UTF-8. */
const MAX_METADATA_BYTES = 8_192;
const MAX_DEPTH = 6;
/** Values in one JSON, so that checking it is quick. */
const MAX_VALUES = 1_000;
const MAX_ATTRIBUTES = 100;
const MAX_URL = 2_048;

/** The first fault of metadata. `pointer` is an RFC 6901 JSON pointer into it. */
interface MetadataFault {
  readonly pointer: string;
  readonly detail: string;
}

/**
 * The JSON text of untrusted metadata, without white space; or its first fault. Known fields that
 * say nothing are left out: exporters write null, an empty text or an empty list in place of none.
 */
export function readMetadata(value: unknown): string | MetadataFault {
  if (!isObject(value)) return { pointer: "", detail: "must be a JSON object" };
  const said = Object.fromEntries(
    Object.entries(value).filter(
      ([name, of]) => !Object.hasOwn(FIELDS, name) || !isEmpty(name, of),
    ),
  );
  const fault = faultIn(value, "", { left: MAX_VALUES }, 1) ?? faultOfFields(said);
  if (fault !== null) return fault;
  const text = JSON.stringify(said);
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > MAX_METADATA_BYTES)
    return { pointer: "", detail: `has ${bytes} bytes; at most ${MAX_METADATA_BYTES}` };
  return text;
}

/** A value that JSON cannot hold, or that is too deep. */
function faultIn(
  value: unknown,
  pointer: string,
  budget: { left: number },
  depth: number,
): MetadataFault | null {
  if (budget.left-- === 0) return { pointer, detail: `is one of more than ${MAX_VALUES} values` };
  if (typeof value === "string" && !isVisible(value, true))
    return { pointer, detail: `must be text ${NOT_HIDDEN}` };
  if (value === null || typeof value === "string" || typeof value === "boolean") return null;
  if (typeof value === "number" && Number.isFinite(value)) return null;
  if (!isObject(value) && !Array.isArray(value)) return { pointer, detail: "must be a JSON value" };
  if (depth > MAX_DEPTH) return { pointer, detail: `is deeper than ${MAX_DEPTH} levels` };
  for (const [name, inner] of Object.entries(value)) {
    if (!isVisible(name)) return { pointer, detail: `must have names ${NOT_HIDDEN}` };
    const at = `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const fault = faultIn(inner, at, budget, depth + 1);
    if (fault !== null) return fault;
  }
  return null;
}

type FieldCheck = (value: unknown) => string | null;

const text =
  (max: number): FieldCheck =>
  (value) =>
    typeof value === "string" && value.length <= max
      ? null
      : `must be text of at most ${max} characters`;
const link: FieldCheck = (value) => (isHttps(value) ? null : "must be an https:// address");
const media: FieldCheck = (value) =>
  isHttps(value) || isContent(value) ? null : "must be an https://, ipfs:// or ar:// address";
const image: FieldCheck = (value) =>
  isHttps(value) || isContent(value) || isImageData(value)
    ? null
    : "must be an https://, ipfs:// or ar:// address, or a data: image in base64 (PNG, JPEG, GIF, WebP, AVIF)";

/**
 * The fields that readers of metadata act on. A script or a plain http address must not reach them.
 */
const FIELDS: Readonly<Record<string, FieldCheck>> = {
  name: text(200),
  symbol: text(50),
  description: text(4_000),
  image,
  image_url: image,
  image_data: image,
  banner_image: image,
  featured_image: image,
  animation_url: media,
  external_url: link,
  external_link: link,
  youtube_url: link,
  attributes: (value) => {
    if (!Array.isArray(value) || value.length > MAX_ATTRIBUTES)
      return `must be a list of at most ${MAX_ATTRIBUTES}`;
    return value.every(isAttribute)
      ? null
      : "must hold objects, each with a value and, if any, a trait_type in text";
  },
};

function faultOfFields(value: Readonly<Record<string, unknown>>): MetadataFault | null {
  for (const [name, check] of Object.entries(FIELDS)) {
    if (!Object.hasOwn(value, name)) continue;
    const detail = check(value[name]);
    if (detail !== null) return { pointer: `/${name}`, detail };
  }
  return null;
}

function isEmpty(name: string, value: unknown): boolean {
  if (value === null) return true;
  return name === "attributes" ? Array.isArray(value) && value.length === 0 : value === "";
}

function isAttribute(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { trait_type: trait, value: of } = value;
  const isNamed = trait === undefined || typeof trait === "string";
  return isNamed && (typeof of === "string" || typeof of === "number" || typeof of === "boolean");
}

function isHttps(value: unknown): value is string {
  if (typeof value !== "string" || value.length > MAX_URL || !/^https:\/\/[^\s\\"<>]+$/.test(value))
    return false;
  if (!URL.canParse(value)) return false;
  const { username, password } = new URL(value);
  return username === "" && password === "";
}

/** An address of IPFS or Arweave, which names the content by its hash. */
function isContent(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value.length <= MAX_URL &&
    /^(?:ipfs:\/\/(?:ipfs\/)?[A-Za-z0-9]{46,}|ar:\/\/[A-Za-z0-9_-]{43})(?:[/?][^\s\\"<>]*)?$/.test(
      value,
    )
  );
}

/** Pixels only: an SVG can hold scripts, which some readers run. */
function isImageData(value: unknown): value is string {
  return (
    typeof value === "string" &&
    /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/]+=*$/.test(value)
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
