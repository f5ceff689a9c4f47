import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Tools } from '../base/tools.js';
import type { Outlet } from '../base/terminal.js';

/** A temporary home with settings, a fake agent and a working directory for the demo. */
export interface Sandbox {
  readonly folder: string;
  readonly dataDir: string;
  readonly workdir: string;
  /** The backend that runs the fake agent. */
  readonly backend: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  remove(): void;
}

const backend = 'demo';

/** Nothing of the user is read or written, whatever the environment says. */
export function createSandbox(agentProgram: string, env: Tools['terminal']['env']): Sandbox {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-demo-'));
  const [home, dataDir, workdir] = [
    join(folder, 'home'),
    join(folder, 'data'),
    join(folder, 'work'),
  ];
  const settings = join(home, '.config', 'millrace');
  for (const each of [settings, dataDir, workdir])
    mkdirSync(each, { recursive: true, mode: 0o700 });
  const binary = join(folder, 'demo-agent');
  writeFileSync(binary, `#!/bin/sh\nexec '${process.execPath}' '${agentProgram}' "$@"\n`);
  chmodSync(binary, 0o700);
  writeFileSync(
    join(settings, 'config.yaml'),
    stringify({
      // A port without a listener, so that no local model takes part.
      backends: {
        extra: [{ id: backend, binary, like: 'claude' }],
        local_url: 'http://127.0.0.1:9',
      },
      branches: { enabled: false },
    }),
  );
  const own = Object.entries(env).filter(([name]) => !/^(?:MILLRACE_|XDG_)/.test(name));
  return {
    folder,
    dataDir,
    workdir,
    backend,
    env: { ...Object.fromEntries(own), HOME: home, MILLRACE_LOG: 'warn' },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Tools for commands in the demo, whose output is not printed. */
export function sandboxTools(tools: Tools, { env, dataDir }: Sandbox): Tools {
  const { terminal } = tools;
  const quiet: Outlet = { ...terminal.err, write: () => undefined };
  return {
    ...tools,
    terminal: {
      ...terminal,
      env: { ...env, MILLRACE_DATA_DIR: dataDir },
      json: false,
      err: quiet,
    },
  };
}
