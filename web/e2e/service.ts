// Starts the real executable (BATCHSCAN_EXE): a demo, or a service over a database of the test. Knows no browser.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Batch } from '../src/data/batch';
import type { Period } from '../src/data/period';
import type { Credentials } from '../src/data/url';

export interface Service extends Credentials {
  url: string;
  stop(signal: NodeJS.Signals): Promise<void>;
  /** Starts it again at the same address. */
  restart(): Promise<unknown>;
}

export interface Demo extends Service {
  /** The sign-in link that it prints. */
  link: string;
}

const executable = process.env.BATCHSCAN_EXE ?? '';
if (executable === '')
  throw new Error('Set BATCHSCAN_EXE to the executable to test, such as target/release/batchscan.');

const folder = mkdtempSync(join(tmpdir(), 'batchscan-e2e-'));
const running = new Set<ChildProcess>();

process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});

export async function startDemo({ batches = 3000, seed = 7, failRate = 0 } = {}): Promise<Demo> {
  const options = ['--batches', `${batches}`, '--seed', `${seed}`, '--fail-rate', `${failRate}`];
  const { output, ...process } = await start(['demo', '--listen', '127.0.0.1:0', ...options]);
  const printed = (pattern: RegExp): string => {
    const match = pattern.exec(output);
    if (match === null) throw new Error(`The demo did not print ${pattern}:\n${output}`);
    return match[1]!;
  };
  const clientId = printed(/client id +(\S+)/i);
  const clientSecret = printed(/client secret +(\S+)/i);
  return { ...process, clientId, clientSecret, link: printed(/(http\S+#sign-in=\S+)/) };
}

/** A service with one organisation. */
export function serve(name: string, batches: Partial<Batch>[], ...options: string[]): Promise<Service> {
  const database = new Database();
  return database.serve(database.addOrganisation(name, batches), ...options);
}

let databases = 0;

/** A SQLite database to add organisations to. */
export class Database {
  readonly url = `sqlite:${join(folder, `${++databases}.db`)}`;

  addOrganisation(name: string, batches: Partial<Batch>[]): Credentials {
    this.#run('org', 'add', name);
    if (batches.length > 0) this.importBatches(name, batches);
    return this.issue(name, 'Anna');
  }

  /** Another access to an organisation. */
  issue(name: string, label: string): Credentials {
    const issued = JSON.parse(this.#run('credential', 'issue', '--org', name, '--label', label, '--json')) as Record<string, string>;
    return { clientId: issued['client_id']!, clientSecret: issued['client_secret']! };
  }

  /** What a batch lacks has a default, except its id and its time. */
  importBatches(organisation: string, batches: Partial<Batch>[]): void {
    const file = join(folder, `${organisation}.ndjson`);
    const required = { batch_name: 'Tray', number_of_images: 1, warnings: false };
    writeFileSync(file, batches.map((batch) => JSON.stringify({ ...required, ...batch })).join('\n'));
    this.importFile(organisation, file);
  }

  importFile(organisation: string, file: string): void {
    this.#run('import', '--org', organisation, file);
  }

  /** A link that signs in once. */
  signInLink({ clientId, url }: Service): string {
    const printed = this.#run('credential', 'link', clientId, '--public-url', url, '--json');
    return (JSON.parse(printed) as { link: string }).link;
  }

  async serve(credentials: Credentials, ...options: string[]): Promise<Service> {
    const args = ['serve', '--database', this.url, ...options, '--listen'];
    let running = await start([...args, '127.0.0.1:0']);
    const { url } = running;
    const restart = async (): Promise<void> => {
      running = await start([...args, new URL(url).host]);
    };
    return { ...credentials, url, stop: (signal) => running.stop(signal), restart };
  }

  #run(...args: string[]): string {
    return execFileSync(executable, [...args, '--database', this.url], { encoding: 'utf8', stdio: 'pipe' });
  }
}

/** All batches of a period, from /v1/batches. */
export async function fetchBatches(service: Service, { from, to }: Period): Promise<Batch[]> {
  const form = { grant_type: 'client_credentials', client_id: service.clientId, client_secret: service.clientSecret };
  const auth = await fetchJson(`${service.url}/v2/auth`, { method: 'POST', body: new URLSearchParams(form) });
  const query = new URLSearchParams({ start_date: `${from}T00:00:00Z`, end_date: `${to}T23:59:59.999999Z` });
  const headers = { Authorization: `Bearer ${(auth as { access_token: string }).access_token}` };
  return (await fetchJson(`${service.url}/v1/batches?${query}`, { headers })) as Batch[];
}

async function fetchJson(url: string, init: RequestInit): Promise<unknown> {
  const response = await fetch(url, init);
  if (!response.ok) throw new Error(`${url} returned ${response.status}: ${await response.text()}`);
  return response.json();
}

/** Starts a command that serves, and waits until it listens. */
async function start(args: string[]): Promise<Omit<Service, keyof Credentials> & { output: string }> {
  const child = spawn(executable, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  child.once('exit', () => running.delete(child));
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    const read = (data: Buffer): void => {
      const listening = /^listening on (\S+)$/m.exec((output += data.toString()));
      if (listening !== null) resolve(listening[1]!);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', reject);
    child.once('exit', (status) =>
      reject(new Error(`batchscan ${args.join(' ')} exited with status ${status}:\n${output}`)),
    );
  });
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await once(child, 'exit');
  };
  return { url, output, stop, restart: () => start(args) };
}
