import { dataDirectory } from '../base/data-directory.js';
import type { Tools } from '../base/tools.js';
import { renderTable, wrapped } from '../render/table.js';
import { parts } from '../up/parts.js';
import { examine, type Report } from './check.js';
import { credentialsCheck } from './credentials.js';
import { dataCheck } from './data.js';
import { portChecks } from './ports.js';
import { nodeCheck, programChecks } from './programs.js';
import { queueChecks } from './queues.js';

const tones = { ok: 'ok', warn: 'warn', fail: 'bad' } as const;

/** Checks everything and says how to fix what is wrong. */
export async function runDoctor({ data }: { data?: string }, tools: Tools): Promise<void> {
  const { env } = tools.terminal;
  const { interrupted } = tools.lifecycle;
  const dataDir = dataDirectory(data, env);
  const reports = await examine([
    nodeCheck(),
    ...programChecks(env, interrupted),
    dataCheck(dataDir),
    credentialsCheck(dataDir, env),
    ...portChecks(parts, interrupted),
    ...queueChecks(dataDir, tools),
  ]);
  const failed = reports.some(({ status }) => status === 'fail');
  if (failed) tools.exitWith(1);
  const checks = reports.map((report) => ({ ...report, advice: report.advice ?? null }));
  const rows = reports.map(({ status, name, finding, advice }) => [
    { text: status, tone: tones[status] },
    name,
    advice === undefined ? finding : `${finding}. ${advice}`,
  ]);
  tools.terminal.show(
    { ok: !failed, checks },
    (out) => `${renderTable(['', '', wrapped('')], rows, out)}\n${verdict(reports)}\n`,
  );
}

function verdict(reports: readonly Report[]): string {
  const count = (wanted: string) => reports.filter(({ status }) => status === wanted).length;
  const [fails, warns] = [count('fail'), count('warn')];
  const warnings = `${warns} ${warns === 1 ? 'warning' : 'warnings'}`;
  if (fails > 0) return `${fails} to fix before Millrace can run, ${warnings}.`;
  return warns > 0 ? `Ready, with ${warnings}.` : 'Ready.';
}
