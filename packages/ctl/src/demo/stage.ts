import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Tools } from '../tools.js';
import type { Outlet } from '../terminal.js';

/** A place for the demo alone: a home with settings, a made-up agent, and a folder to work in. */
export interface Stage {
  readonly folder: string;
  readonly dataDir: string;
  readonly workdir: string;
  /** The backend that runs the made-up agent. */
  readonly backend: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  remove(): void;
}

const backend = 'demo';

/** Nothing of the person's own is read or written, whatever the variables say. */
export function setStage(agentProgram: string, env: Tools['terminal']['env']): Stage {
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
      // A port that nothing listens at: no model of this machine takes part.
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

/** The tools of a command, as they are on the stage: what is told there goes nowhere by itself. */
export function onStage(tools: Tools, { env, dataDir }: Stage): Tools {
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
