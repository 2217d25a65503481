// Runs the real executable: a demo nursery, or a service over a database of the test's own. Owns its processes,
// its files, and the questions that tests ask the interface directly. Knows nothing of browsers.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * @typedef {{ clientId: string, clientSecret: string }} Credential
 * @typedef {Credential & { url: string, stop: (signal?: NodeJS.Signals) => Promise<void> }} Service
 * @typedef {Record<string, string | number | boolean | null>} Batch as the interface sends it
 */

// Fifty thousand batches are made and stored before the demo listens: seconds on a slow machine.
const START_MS_MAX = 30_000;
const STOP_MS_MAX = 5_000;
const COMMAND_MS_MAX = 20_000;
const REQUEST_MS_MAX = 20_000;

const executable = findExecutable();
const folder = mkdtempSync(join(tmpdir(), 'batchscan-e2e-'));
/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

// The last resort, for a run that was broken off: nothing that was started stays.
process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

export async function stopAll() {
  await Promise.all([...running].map((child) => stop(child, 'SIGTERM')));
}

/** A demo nursery, signed in by its own credential. `link` is the one it prints. */
export async function demo({ batches = 3000, seed = 7, failRate = 0 } = {}) {
  const flags = ['--batches', String(batches), '--seed', String(seed), '--fail-rate', String(failRate)];
  const { child, text, url } = await start(['demo', '--listen', '127.0.0.1:0', ...flags]);
  const said = (pattern) => pattern.exec(text)?.[1] ?? fail(`The demo did not print ${pattern}:\n${text}`);
  return {
    url,
    clientId: said(/client id +(\S+)/),
    clientSecret: said(/client secret +(\S+)/),
    link: said(/^ +(http\S+#sign-in=\S+)$/m),
    stop: (signal) => stop(child, signal),
  };
}

/** `serve` over a database. With a port of before, the service is where it was. */
export async function serve(database, { port = 0, flags = [] } = {}) {
  const args = ['serve', '--database', database.url, '--listen', `127.0.0.1:${port}`, ...flags];
  const { child, url } = await start(args);
  return { url, port: Number(new URL(url).port), stop: (signal) => stop(child, signal) };
}

let databases = 0;

/** A new SQLite database to give organisations to. */
export function newDatabase() {
  const url = `sqlite:${join(folder, `${++databases}.db`)}`;
  return {
    url,
    /** @param {string} name @param {Batch[]} batches @returns {Promise<Credential>} */
    async organisation(name, batches) {
      await run(['org', 'add', name, '--database', url]);
      if (batches.length > 0) {
        const file = join(folder, `${databases}-${name}.ndjson`);
        await writeFile(file, batches.map((batch) => JSON.stringify(batch)).join('\n'));
        await run(['import', '--org', name, '--database', url, file]);
      }
      const issued = JSON.parse(await run(['credential', 'issue', '--org', name, '--json', '--database', url]));
      return { clientId: issued.client_id, clientSecret: issued.client_secret };
    },
  };
}

/** All batches of a span of UTC days, both inclusive, as /v1/batches sends them. @returns {Promise<Batch[]>} */
export async function batchesOf(service, { from, to }) {
  const form = { grant_type: 'client_credentials', client_id: service.clientId, client_secret: service.clientSecret };
  const auth = await ask(`${service.url}/v2/auth`, { method: 'POST', body: new URLSearchParams(form) });
  const query = new URLSearchParams({ start_date: `${from}T00:00:00Z`, end_date: `${to}T23:59:59.999999Z` });
  return ask(`${service.url}/v1/batches?${query}`, { headers: { Authorization: `Bearer ${auth.access_token}` } });
}

async function ask(url, init) {
  const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(REQUEST_MS_MAX) });
  if (!answer.ok) fail(`${url} answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

async function run(args) {
  const { stdout } = await promisify(execFile)(executable, args, { timeout: COMMAND_MS_MAX });
  return stdout;
}

/** Starts a command that serves, and waits for the line that says where. It is the last line of all. */
function start(args) {
  const child = spawn(executable, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return new Promise((resolve, reject) => {
    let text = '';
    let log = '';
    const giveUp = (why) => reject(new Error(`batchscan ${args.join(' ')} ${why}:\n${text}${log}`));
    const timer = setTimeout(() => giveUp(`did not listen within ${START_MS_MAX} ms`), START_MS_MAX);
    child.once('error', (error) => giveUp(error.message));
    child.once('exit', (status) => giveUp(`ended with status ${status}`));
    child.stderr.on('data', (data) => (log = (log + data).slice(-2_000)));
    child.stdout.on('data', (data) => {
      text += data;
      const url = /^listening on (\S+)$/m.exec(text)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve({ child, text, url });
    });
  });
}

async function stop(child, signal = 'SIGTERM') {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill(signal);
  // Connections of an open page would keep it draining; nobody waits for their answers here.
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
  await gone;
  clearTimeout(timer);
}

function findExecutable() {
  const path = process.env.BATCHSCAN_EXE;
  if (!path)
    fail('BATCHSCAN_EXE is not set. Set it to the batchscan executable to test, such as target/release/batchscan.');
  try {
    accessSync(path, constants.X_OK);
  } catch {
    fail(`BATCHSCAN_EXE is ${path}, and there is no executable there. Build it first: cargo build --release.`);
  }
  return path;
}

function fail(message) {
  throw new Error(message);
}
