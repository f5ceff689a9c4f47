import { spawn, type ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { httpClient, type TestRequest } from './http-client.js';
import { newDirectory, secretsYaml, tokens, tokensYaml } from './server.js';

const ctl = fileURLToPath(new URL('../../../../bin/ctl', import.meta.url));

export const soon = { timeout: 60_000, interval: 50 };

export interface Run {
  child: ChildProcess;
  /** Lines of stdout so far. */
  lines: string[];
  stderr: () => string;
  ended: Promise<number | string>;
}

/** The built server as a process of its own, ended with the test. */
export function run(args: string[], environment: Record<string, string> = {}): Run {
  const child = spawn(process.execPath, [ctl, 'queue', 'serve', ...args], {
    env: { ...process.env, NODE_OPTIONS: '', ...environment },
  });
  onTestFinished(() => void (child.exitCode === null && child.kill('SIGKILL')));
  let [out, err] = ['', ''];
  const lines: string[] = [];
  child.stdout.on('data', (bytes: Buffer) => {
    out += bytes.toString();
    lines.splice(0, lines.length, ...out.split('\n').slice(0, -1));
  });
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()));
  const ended = new Promise<number | string>((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'gone'));
  });
  return { child, lines, stderr: () => err, ended };
}

/** The addresses that it listens at, by listener. */
export async function listening({ lines, stderr }: Run): Promise<Record<string, string>> {
  await expect.poll(() => lines.length, { timeout: 60_000, message: stderr() }).toBe(2);
  const events = lines.map((line) => JSON.parse(line) as Record<string, string>);
  for (const event of events) {
    expect(event).toMatchObject({ event: 'listening', component: 'queue' });
  }
  return Object.fromEntries(events.map(({ listener, url }) => [listener!, url!]));
}

/** A config file with everything beside it, as the page on the server's config has it. */
export function newHome(more = ''): string {
  const home = newDirectory();
  writeFileSync(join(home, 'tokens.yaml'), tokensYaml);
  writeFileSync(join(home, 'secrets.yaml'), secretsYaml);
  writeFileSync(
    join(home, 'queue.yaml'),
    `listen: 127.0.0.1:0
data: ./data
storage: embedded
tokens_file: tokens.yaml
secrets_file: secrets.yaml
callback_allowlist:
  - {scheme: http, host: 127.0.0.1, port: "*", path_prefix: /, networks: [127.0.0.0/8]}
metrics_listen: 127.0.0.1:0
${more}`,
  );
  return home;
}

/** Sends requests as root. */
export const caller = (url: string) => {
  const send = httpClient(url);
  const as = (request: TestRequest) => send({ ...request, token: tokens.root });
  return Object.assign(as, {
    configure: (callbackUrl: string) =>
      as({
        method: 'PUT',
        path: '/v1/admin/queues/mail/config',
        body: { callback: { url: callbackUrl }, lease: { grace_ms: 100 } },
      }),
    submit: async () => {
      const path = '/v1/queues/mail/tasks';
      const answer = await as({ method: 'POST', path, body: { handler_ref: 'a' } });
      expect(answer.status, answer.text).toBe(202);
      return String(answer.body['id']);
    },
    status: async (id: string) => (await as({ path: `/v1/tasks/${id}` })).body['status'],
  });
};
