import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { schemasOf } from '@millrace/kit/http';
import { openApiDocument } from '@millrace/contract/documents';
import { ctlHere, startCtl, type Ended, type Started } from './run-ctl.js';

/** A home directory with a daemon, started as people start it. */
export class DaemonServer {
  #home: string | undefined;
  /** All that the daemon has logged, over every start. */
  logged = '';
  #running: Started | undefined;
  #url = '';

  /** Made when it is first needed: without a test that runs, nothing would remove it. */
  get home(): string {
    return (this.#home ??= mkdtempSync(join(tmpdir(), 'ctl-daemon-')));
  }

  get data(): string {
    return join(this.home, '.local', 'share', 'millrace');
  }

  get url(): string {
    return this.#url;
  }

  /** The search path has nothing but what a test installs. */
  get env(): Record<string, string> {
    return { HOME: this.home, PATH: join(this.home, 'bin') };
  }

  /** Resolves when it listens. No local model is looked for where none of ours can be. */
  async start(...flags: string[]): Promise<void> {
    const fixed = ['--listen', '127.0.0.1:0', '--backends-local-url', 'http://127.0.0.1:1'];
    const started = startCtl(['daemon', 'serve', ...fixed, ...flags], this.env, { cwd: this.home });
    this.#running = started;
    let out = '';
    started.child.stdout.on('data', (text: string) => (out += text));
    started.child.stderr.on('data', (text: string) => (this.logged += text));
    await started.says('"event":"listening"');
    this.#url = (JSON.parse(out.split('\n')[0]!) as { url: string }).url;
  }

  async stop(): Promise<Ended | undefined> {
    this.#running?.child.kill('SIGTERM');
    const ended = await this.#running?.ended;
    this.#running = undefined;
    return ended;
  }

  async remove(): Promise<void> {
    await this.stop();
    if (this.#home) rmSync(this.#home, { recursive: true, force: true });
    this.#home = undefined;
  }

  /** Runs `ctl` in the same home, where it finds the daemon by its address file. */
  ctl(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
    return ctlHere(args, { ...this.env, ...env }, { cwd: this.home });
  }

  /** As `ctl`, with what it printed as JSON; fails when it failed. */
  async json(args: readonly string[], env: Record<string, string> = {}): Promise<any> {
    const ended = await this.ctl([...args, '--json'], env);
    if (ended.code !== 0) throw new Error(`ctl ${args.join(' ')}: ${ended.err}`);
    return JSON.parse(ended.out);
  }

  /** A file below the home. */
  write(path: string, value: unknown): string {
    const file = join(this.home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
    return file;
  }

  /** A command line on the search path that does nothing. */
  install(name: string, script = 'exit 0'): void {
    chmodSync(this.write(`bin/${name}`, `#!/bin/sh\n${script}\n`), 0o755);
  }
}

const schemas = schemasOf(openApiDocument('daemon'));

/** What is wrong with a value by the schema of this name in the contract: nothing, one hopes. */
export function faultsOf(schema: string, value: unknown): unknown[] {
  return schemas.named(schema).faults(value);
}
