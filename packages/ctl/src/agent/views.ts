import type { DaemonSchema } from '@millrace/contract/daemon';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { systemClock } from '@millrace/kit/clock';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { factsText, listText } from '../base/list-text.js';
import { explain, explanationSheet } from './explaining.js';
import { listFleet, type FleetFlags } from './fleet.js';
import { findSession, readSessions } from './find-session.js';

type Session = DaemonSchema<'Session'>;

interface ListFlags extends DaemonFlags, FleetFlags {
  status?: Session['status'];
  all?: boolean;
}

export async function listAgents(flags: ListFlags, tools: Tools): Promise<void> {
  if (flags.all) return listFleet(flags, tools);
  const api = await daemonApi(flags, tools);
  const all = await readSessions(api);
  const { status } = flags;
  const sessions = status === undefined ? all : all.filter((each) => each.status === status);
  tools.terminal.show({ sessions }, (out) => {
    if (status !== undefined && sessions.length === 0)
      return `No agent has the status ${status}.\n`;
    // Retries of a queue task are one row.
    const rows = daemonLists.newestAttempts(sessions);
    return listText(daemonLists.sessions, rows, systemClock.now(), out);
  });
}

export async function showAgent(words: string, flags: DaemonFlags, tools: Tools): Promise<void> {
  const session = await findSession(await daemonApi(flags, tools), words);
  tools.terminal.show(session, (out) =>
    factsText(daemonLists.sessionFacts(session), systemClock.now(), out),
  );
}

export async function explainAgent(words: string, flags: DaemonFlags, tools: Tools): Promise<void> {
  const session = await findSession(await daemonApi(flags, tools), words);
  const now = systemClock.now();
  tools.terminal.show(explain(session, now), (out) => explanationSheet(session, now, out));
}
