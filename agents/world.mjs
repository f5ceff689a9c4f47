/**
 * One daemon with real agents: its own HOME and data directory, an emptied environment, a git
 * repository to work in and a fake model server. Nothing of the machine's own configuration is
 * read.
 */
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { clis } from './clis.mjs';
import { startModelServer } from './models/server.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const ctl = process.env.MILLRACE_CTL ?? join(root, 'bin', 'ctl');
// Codex does not run its helpers from the system's temporary directory.
const work = process.env.MILLRACE_AGENTS_DIR ?? join(root, '.cache', 'agents');
/** Multiplies every time limit, for a machine that is busy with other work. */
const patience = Number(process.env.MILLRACE_AGENTS_PATIENCE ?? 1);
const systemPath = '/usr/local/bin:/usr/bin:/bin';

export class World {
  /** @param {{names?: string[], config?: object}} options */
  static async start({ names = Object.keys(clis), config = {} } = {}) {
    mkdirSync(work, { recursive: true });
    const directory = realpathSync(mkdtempSync(join(work, 'run-')));
    const world = new World(directory, await startModelServer());
    world.#prepare(names, config);
    await world.startDaemon();
    return world;
  }

  constructor(directory, model) {
    this.directory = directory;
    this.model = model;
    this.home = join(directory, 'home');
    this.dataDir = join(directory, 'data');
    this.repository = join(directory, 'repository');
    // No agent trusts it, and the daemon runs there, so it is where unnamed work is done.
    this.elsewhere = `${directory}-elsewhere`;
    this.log = '';
  }

  #prepare(names, config) {
    const { home, repository, directory } = this;
    const bin = join(directory, 'bin');
    const temporary = join(directory, 'tmp');
    for (const path of [home, repository, bin, temporary, this.elsewhere]) {
      mkdirSync(path, { recursive: true });
    }
    this.environment = {
      PATH: `${bin}:${systemPath}`,
      HOME: home,
      LANG: 'C.UTF-8',
      TMPDIR: temporary,
      SHELL: '/bin/sh',
    };
    this.git('init', '-q', '-b', 'main');
    writeFileSync(join(repository, 'README.md'), 'A repository for agents.\n');
    this.git('add', '.');
    this.git('commit', '-qm', 'Start');
    for (const name of names) this.#install(name, bin);
    const file = join(directory, 'config.json');
    const settings = {
      listen: '127.0.0.1:0',
      data_dir: this.dataDir,
      branches: { enabled: false },
    };
    writeFileSync(file, JSON.stringify({ ...settings, ...config }));
    this.configFile = file;
    // `ctl up` reads it from here, and gets addresses and directory by flags.
    const { listen: _, data_dir: __, ...own } = { ...settings, ...config };
    mkdirSync(join(home, '.config', 'millrace'), { recursive: true });
    writeFileSync(join(home, '.config', 'millrace', 'config.yaml'), JSON.stringify(own));
  }

  #install(name, bin) {
    const cli = clis[name];
    const binary = cli.binary();
    if (binary === undefined) return;
    const { home, model, repository } = this;
    const mcp = { command: process.execPath, args: [ctl, 'mcp', '--data', this.dataDir] };
    const workspaces = [repository, this.directory];
    const setUp = { home, modelUrl: model.url, workspaces, mcp };
    Object.assign(this.environment, cli.setUp(setUp));
    writeProgram(
      join(bin, cli.name ?? name),
      /\.[cm]?js$/.test(binary) ? [process.execPath, binary] : [binary],
    );
    const { adapter } = cli;
    if (adapter && !adapter.missing) writeProgram(join(bin, adapter.program), adapter.command);
  }

  git(...args) {
    const env = {
      ...this.environment,
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@example.com',
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@example.com',
    };
    return execFileSync('git', args, { cwd: this.repository, env, encoding: 'utf8' });
  }

  /** The help of a CLI, or of one of its commands. */
  help(name, words) {
    const options = { cwd: this.elsewhere, env: this.environment, encoding: 'utf8', input: '' };
    const { stdout, stderr } = spawnSync(name, [...words, '--help'], options);
    return `${stdout}\n${stderr}`;
  }

  startDaemon() {
    return this.#serve(['daemon', 'serve', '--config', this.configFile], 'listening');
  }

  /** Database, queue and daemon together, on the same data. */
  startAll() {
    const anyPort = ['listen', 'queue-listen', 'metrics-listen', 'db-grpc', 'db-http'];
    const flags = anyPort.flatMap((name) => [`--${name}`, '127.0.0.1:0']);
    return this.#serve(['up', '--json', '--data', this.dataDir, ...flags], 'ready');
  }

  /** Runs the command line; resolves with what it printed on stdout. */
  ctl(...args) {
    return new Promise((resolve, reject) => {
      const env = { ...this.environment, ...this.queueAccess, MILLRACE_DATA_DIR: this.dataDir };
      const options = { cwd: this.repository, env, encoding: 'utf8' };
      execFile(process.execPath, [ctl, ...args], options, (error, stdout, stderr) => {
        if (error) reject(new Error(`ctl ${args.join(' ')}: ${stderr || error.message}`));
        else resolve(stdout);
      });
    });
  }

  async #serve(args, readyEvent) {
    const child = spawn(process.execPath, [ctl, ...args], {
      cwd: this.elsewhere,
      env: this.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.daemon = child;
    this.url = undefined;
    this.queueAccess = {};
    const take = (chunk) => {
      this.log += chunk;
      const lines = this.log.slice(this.logStart).split('\n').slice(0, -1);
      const events = lines
        .filter((line) => line.startsWith('{"event"'))
        .map((line) => JSON.parse(line));
      const own = events.find((each) => each.event === 'listening' && each.component === 'daemon');
      const queue = events.find(
        (each) => each.component === 'queue' && each.listener === 'http' && each.url,
      );
      // Builds of version 0.1.0 do not find the queue by the data directory.
      if (queue) this.queueAccess = accessOf(this.dataDir, queue.url);
      if (own && events.some(({ event }) => event === readyEvent)) this.url ??= own.url;
    };
    this.logStart = this.log.length;
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    const hasEnded = () => child.exitCode !== null;
    await this.until('the daemon listens', () => this.url !== undefined || hasEnded(), 90_000);
    if (this.url === undefined) throw new Error(`the daemon ended: ${this.log.slice(-500)}`);
    const tokenFile = join(this.dataDir, 'daemon.token');
    this.token = existsSync(tokenFile) ? readFileSync(tokenFile, 'utf8').trim() : undefined;
  }

  /** @param {'SIGTERM' | 'SIGKILL'} signal */
  async stopDaemon(signal = 'SIGTERM') {
    const { daemon } = this;
    if (!daemon || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const ended = new Promise((resolve) => daemon.once('exit', resolve));
    daemon.kill(signal);
    await ended;
  }

  async api(method, path, body, headers = {}) {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(this.token && { authorization: `Bearer ${this.token}` }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const value = text === '' ? undefined : JSON.parse(text);
    if (!response.ok) {
      throw Object.assign(new Error(`${method} ${path}: ${response.status} ${text}`), { value });
    }
    return value;
  }

  spawn(request) {
    return this.api('POST', '/api/v1/spawn', { cwd: this.repository, worktree: false, ...request });
  }

  session(id) {
    return this.api('GET', `/api/v1/sessions/${id}`);
  }

  async output(id) {
    return (await this.api('GET', `/api/v1/sessions/${id}/output`)).lines.join('\n');
  }

  send(id, text) {
    return this.api('POST', `/api/v1/sessions/${id}:send`, { text });
  }

  stop(id) {
    return this.api('POST', `/api/v1/sessions/${id}:stop`, {});
  }

  /** Waits for one of the statuses, and says what was there instead. */
  async reach(id, statuses, limitMs = 60_000) {
    const wanted = [statuses].flat();
    const seen = [];
    let session;
    await this.until(
      () => `${id} is ${wanted.join(' or ')} (was ${seen.join(', ')}; ${session?.status_reason})`,
      async () => {
        session = await this.session(id);
        if (seen.at(-1) !== session.status) seen.push(session.status);
        return wanted.includes(session.status);
      },
      limitMs,
    );
    return { ...session, seen };
  }

  async until(what, isSo, limitMs = 60_000) {
    const end = Date.now() + limitMs * patience;
    while (!(await isSo())) {
      if (Date.now() > end)
        throw new Error(
          `not within ${limitMs * patience} ms: ${typeof what === 'function' ? what() : what}`,
        );
      await sleep(100);
    }
  }

  async stopAgents() {
    const nobody = () => ({ sessions: [] });
    const { sessions } = await this.api('GET', '/api/v1/sessions').catch(nobody);
    const live = sessions.filter(({ pid }) => pid !== null);
    await Promise.allSettled(live.map(({ id }) => this.stop(id)));
  }

  async close() {
    if (this.url) await this.stopAgents();
    await this.stopDaemon();
    await this.model.close();
    if (process.env.MILLRACE_KEEP === '1') return;
    for (const path of [this.directory, this.elsewhere]) {
      rmSync(path, { recursive: true, force: true });
    }
  }
}

/** What `ctl up` wrote for callers on the same machine. */
function accessOf(dataDir, url) {
  const file = join(dataDir, 'queue.token');
  const token = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  return { MILLRACE_QUEUE_URL: url, ...(token && { MILLRACE_QUEUE_TOKEN: token }) };
}

function writeProgram(file, command) {
  const words = command.map((word) => `"${word}"`).join(' ');
  writeFileSync(file, `#!/bin/sh\nexec ${words} "$@"\n`);
  chmodSync(file, 0o755);
}
