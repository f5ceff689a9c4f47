import { resolve } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import { asTyped } from '../base/command-name.js';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import { confirmed } from '../base/confirming.js';
import type { Flags, Tools } from '../base/tools.js';
import { dollars } from '../render/figures.js';
import { renderTable, type Cell } from '../render/table.js';
import { printable } from '../render/text.js';
import type { Outlet, Terminal } from '../base/terminal.js';
import { findSession } from './find-session.js';
import { promptOf } from './prompt.js';

type SpawnRequest = DaemonSchema<'SpawnRequest'>;
type Session = DaemonSchema<'Session'>;

/** Flags that describe an agent and where it runs. */
export type WorkFlags = Flags<
  'backend model repo cwd branch name',
  'worktree autoRestart force'
> & { tag?: string[]; driver?: SpawnRequest['driver'] };

export interface SpawnFlags extends WorkFlags, DaemonFlags {
  parent?: string;
}

/**
 * Builds the request from the flags. Paths become absolute because the daemon has another working
 * directory; without any, the agent works in the current directory.
 */
export function spawnRequest(prompt: string, flags: WorkFlags): SpawnRequest {
  const { backend, model, repo, cwd, branch, worktree, name, tag, autoRestart, driver } = flags;
  const wantsRepository = branch !== undefined || worktree === true;
  const place =
    repo === undefined && cwd === undefined
      ? { [wantsRepository ? 'repo' : 'cwd']: resolve('.') }
      : {
          ...(repo === undefined ? {} : { repo: resolve(repo) }),
          ...(cwd === undefined ? {} : { cwd: resolve(cwd) }),
        };
  return {
    prompt,
    ...place,
    ...(backend === undefined ? {} : { backend }),
    ...(model === undefined ? {} : { model }),
    ...(branch === undefined ? {} : { branch }),
    ...(worktree === undefined ? {} : { worktree }),
    ...(name === undefined ? {} : { name }),
    ...(tag === undefined ? {} : { tags: [...new Set(tag)] }),
    ...(autoRestart === undefined ? {} : { auto_restart: autoRestart }),
    ...(driver === undefined ? {} : { driver }),
    ...(flags.force === undefined ? {} : { force: flags.force }),
  };
}

export async function spawnAgent(
  given: string | undefined,
  flags: SpawnFlags,
  tools: Tools,
): Promise<void> {
  const prompt = await promptOf(given, 'prompt', tools.terminal);
  const api = await daemonApi(flags, tools);
  const parent = flags.parent === undefined ? undefined : await findSession(api, flags.parent);
  const request = {
    ...spawnRequest(prompt, flags),
    ...(parent === undefined ? {} : { parent_id: parent.id }),
  };
  const session = await spawnWithBudget(api, request, tools.terminal);
  tools.terminal.show(session, (out) => startedText(session, out));
}

async function spawnWithBudget(
  api: DaemonApi,
  request: SpawnRequest,
  terminal: Terminal,
): Promise<Session> {
  const send = (body: SpawnRequest) => api.call('spawnSession', { body });
  try {
    return await send(request);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'BUDGET_CONFIRMATION_REQUIRED') throw error;
    await confirmBudget(error, terminal);
    return send({ ...request, force: true });
  }
}

/** Returns if the user confirms. */
async function confirmBudget(refusal: Refusal, terminal: Terminal): Promise<void> {
  const verdict = refusal.extra.members?.['verdict'] as DaemonSchema<'BudgetVerdict'>;
  const figures =
    `${dollars(verdict.daily_usd)} today${capText(verdict.cap_daily)}, ` +
    `${dollars(verdict.weekly_usd)} in 7 days${capText(verdict.cap_weekly)}`;
  if (!terminal.in.isScreen || terminal.json) {
    throw new Refusal(
      refusal.code,
      `A spend cap is reached: ${figures}. Nothing was started. To start it anyway, add --force.`,
      refusal.extra,
    );
  }
  const { err } = terminal;
  const rows: Cell[][] = [
    ['spent today', dollars(verdict.daily_usd), capText(verdict.cap_daily).trim()],
    ['spent in 7 days', dollars(verdict.weekly_usd), capText(verdict.cap_weekly).trim()],
  ];
  err.write(`${err.paint('warn', 'A spend cap is reached.')}\n`);
  err.write(renderTable(['', '', ''], rows, err));
  if (await confirmed('Spawn anyway? [y/N] ', terminal)) return;
  throw new Refusal('CANCELLED', 'Nothing was started.');
}

function capText(cap: number): string {
  return cap === 0 ? '' : ` of ${dollars(cap)}`;
}

function startedText(session: Session, out: Outlet): string {
  const { id, backend, workdir, status, driver } = session;
  const rows: Cell[][] = [
    [asTyped(`  ctl agent logs -f ${id}`), 'follow its output'],
    [asTyped(`  ctl agent attach ${id}`), 'open its terminal'],
    [asTyped(`  ctl agent explain ${id}`), 'its status and the next steps'],
  ];
  const shown = driver === 'tmux' ? rows : rows.filter((_, at) => at !== 1);
  return (
    `Started ${printable(session.name)} on ${backend} in ${printable(workdir)}; it is ${status}.\n` +
    renderTable(['', ''], shown, { ...out, columns: Infinity })
  );
}
