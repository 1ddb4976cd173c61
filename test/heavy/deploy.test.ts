import { type ChildProcess, execFileSync, execSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PostgresJournal } from "../../core/cluster/index.ts";
import { freePort } from "../../scripts/sandbox/process.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DEPLOY = join(ROOT, "examples/deploy");
const BINARIES = "/usr/lib/postgresql/15/bin";
/** PostgreSQL refuses to run as root; this is `nobody`. */
const NOBODY = 65_534;
const IDENTITY = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-deploy-files-"));
  chmodSync(folder, 0o755);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Runs a check with a program that may be missing here. */
function checked(program: string, args: readonly string[]): string | null {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    console.log(`Not run: ${program} is not here.`);
    return null;
  }
}

test("the compose file is YAML with the services of a cluster", () => {
  const script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
  const said = checked("python3", ["-c", script, join(DEPLOY, "compose.yaml")]);
  if (said === null) return;
  const { services, volumes } = JSON.parse(said) as Record<
    "services" | "volumes",
    Record<string, { volumes?: string[] }>
  >;
  expect(Object.keys(services).filter((name) => /^(?:server|member)-/.test(name))).toHaveLength(5);
  const mounted = Object.values(services).flatMap((service) =>
    (service.volumes ?? []).map((each) => each.split(":")[0] ?? ""),
  );
  for (const path of mounted.filter((each) => each.startsWith(".")))
    expect(existsSync(join(DEPLOY, path)), path).toBe(true);
  expect(Object.keys(volumes).sort()).toEqual(
    mounted.filter((each) => !each.startsWith(".")).sort(),
  );
});

test("kustomize builds the manifests", () => {
  const said = checked("kubectl", ["kustomize", join(DEPLOY, "kubernetes")]);
  if (said !== null) expect(said.match(/^kind: /gm)).toHaveLength(9);
});

test("systemd accepts the unit", () => {
  const said = checked("systemd-analyze", ["verify", join(DEPLOY, "mintmark.service")]);
  if (said !== null) expect(said).toBe("");
});

describe.skipIf(!existsSync(BINARIES))("the scripts of PostgreSQL", () => {
  const password = randomBytes(12).toString("hex");
  const running: ChildProcess[] = [];
  const environment = (data: string, more: Record<string, string> = {}) => ({
    PATH: `${BINARIES}:/usr/bin:/bin`,
    PGDATA: data,
    POSTGRES_PASSWORD: password,
    ...more,
  });
  const start = (program: string, args: readonly string[], env: Record<string, string>) => {
    const child = spawn(program, args, { env, stdio: "ignore", ...IDENTITY });
    running.push(child);
    return child;
  };
  afterAll(async () => {
    for (const child of running.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      child.kill("SIGINT");
      await ended;
    }
  });

  test("make a primary with a synchronous standby, on which a journal opens", async () => {
    const at = join(folder, "postgres");
    mkdirSync(at);
    if (IDENTITY.uid !== undefined) chownSync(at, NOBODY, NOBODY);
    for (const name of ["primary.sh", "standby.sh"])
      cpSync(join(DEPLOY, "postgres", name), join(folder, name));
    const [port, standbyPort] = [await freePort(0), await freePort(0)];
    const [data, standbyData] = [join(at, "primary"), join(at, "standby")];
    const sockets = ["-c", `unix_socket_directories=${at}`];
    const env = environment(data, { PGHOST: at, PGPORT: `${port}` });
    // The image's entrypoint does this: initdb, a server for the scripts, then the server.
    execFileSync("initdb", ["-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256"], {
      env,
      stdio: "ignore",
      ...IDENTITY,
    });
    const control = (...args: string[]) =>
      execFileSync("pg_ctl", args, { env, stdio: "ignore", ...IDENTITY });
    const options = `-p ${port} -c listen_addresses='' -c unix_socket_directories=${at}`;
    control("-w", "-o", options, "start");
    execFileSync("bash", [join(folder, "primary.sh")], { env, stdio: "ignore", ...IDENTITY });
    control("-w", "-m", "fast", "stop");
    start("postgres", ["-p", `${port}`, "-c", "listen_addresses=127.0.0.1", ...sockets], env);
    const standby = environment(standbyData, { PRIMARY: "127.0.0.1", PRIMARY_PORT: `${port}` });
    start("bash", [join(folder, "standby.sh"), "-p", `${standbyPort}`, ...sockets], standby);
    const states = async () => {
      const client = new pg.Client({ host: at, port, user: "postgres", database: "postgres" });
      client.on("error", () => {});
      try {
        await client.connect();
        return (await client.query("select application_name, sync_state from pg_stat_replication"))
          .rows;
      } catch {
        return [];
      } finally {
        await client.end().catch(() => {});
      }
    };
    await expect.poll(states).toEqual([{ application_name: "standby", sync_state: "quorum" }]);
    const url = `postgres://mintmark:${password}@127.0.0.1:${port}/mintmark`;
    await using journal = await PostgresJournal.open({
      url,
      shard: "deploy",
      keys: [randomBytes(32)],
    });
    expect(await journal.lead({ name: "a", url: "http://a.test" }, 5_000)).not.toBeNull();
    await journal.append(0, [Buffer.from("one")]);
    const wrong = PostgresJournal.open({
      url: url.replace(password, "wrong"),
      shard: "deploy",
      keys: [randomBytes(32)],
    });
    await expect(wrong).rejects.toMatchObject({ code: "validation_failed" });
  });
});

test("the steps of the Dockerfile make a package whose server runs", async () => {
  const lines = readFileSync(join(DEPLOY, "Dockerfile"), "utf8").split("\n");
  const [build, app] = [join(folder, "src"), join(folder, "app")];
  mkdirSync(build);
  // COPY . . of a clone.
  execSync(
    `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t ${build}`,
    { cwd: ROOT },
  );
  const commands = lines
    .filter((line) => line.startsWith("RUN ") && !line.includes("chown"))
    .map((line) => line.slice(4));
  expect(commands).toHaveLength(3);
  const others = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|MINTMARK_|NODE_(?!EXTRA_))/.test(name),
  );
  // The image's Node, where this machine's is older.
  const env = {
    ...Object.fromEntries(others),
    PATH: `${ROOT}node_modules/.bin:${process.env.PATH}`,
  };
  for (const command of commands) {
    const here = command.replaceAll("/src/", `${build}/`).replaceAll("/app", app);
    execSync(here, { cwd: build, env, stdio: ["ignore", "ignore", "inherit"] });
  }
  const said = execFileSync(join(app, "node_modules/.bin/mintmark"), ["server", "--help"], {
    env,
    encoding: "utf8",
  });
  expect(said).toContain("--journal");
});
