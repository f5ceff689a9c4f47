import type { CtlCommand } from '../base/command.js';
import type { Report } from '../doctor/check.js';
import type { Tools } from '../base/tools.js';
import type { Tone } from '../render/paint.js';

const TONES = { ok: 'ok', warn: 'warn', fail: 'bad' } as const satisfies Record<string, Tone>;

export function build(doctor: CtlCommand, tools: Tools): void {
  doctor
    .description(
      'Check Node, the data directory, the files with tokens, keys and secrets, the ' +
        'programs that Millrace calls, the ports it listens on, and queues without a worker. ' +
        'Explains how to fix each problem, and changes nothing.',
    )
    .option('--data <dir>', 'Check this data directory (default: your data directory)')
    .example('ctl doctor', 'check everything')
    .example('ctl doctor --data ./data', 'check another data directory')
    .example('ctl doctor --json', 'the same for scripts')
    .exitCode(0, 'ready, perhaps with warnings')
    .exitCode(1, 'something must be fixed first')
    .action(async (options: { data?: string }) => {
      const reports = await examineAll(options.data, tools);
      const failed = reports.some(({ status }) => status === 'fail');
      if (failed) tools.exitWith(1);
      const { out, json } = tools.terminal;
      if (json) {
        const checks = reports.map((report) => ({ ...report, advice: report.advice ?? null }));
        out.write(`${JSON.stringify({ ok: !failed, checks }, null, 2)}\n`);
        return;
      }
      const { renderTable, wrapped } = await import('../render/table.js');
      const rows = reports.map(({ status, name, finding, advice }) => [
        { text: status, tone: TONES[status] },
        name,
        advice === undefined ? finding : `${finding}. ${advice}`,
      ]);
      out.write(`${renderTable(['', '', wrapped('')], rows, out)}\n${verdict(reports)}\n`);
    });
}

async function examineAll(data: string | undefined, tools: Tools): Promise<Report[]> {
  const [
    { examine },
    programs,
    { dataCheck },
    { credentialsCheck },
    { portChecks },
    { queueChecks },
    up,
    place,
  ] = await Promise.all([
    import('../doctor/check.js'),
    import('../doctor/programs.js'),
    import('../doctor/data.js'),
    import('../doctor/credentials.js'),
    import('../doctor/ports.js'),
    import('../doctor/queues.js'),
    import('../up/parts.js'),
    import('../base/data-directory.js'),
  ]);
  const { env } = tools.terminal;
  const { interrupted } = tools.lifecycle;
  const dataDir = place.dataDirectory(data, env);
  return examine([
    programs.nodeCheck(),
    ...programs.programChecks(env, interrupted),
    dataCheck(dataDir),
    credentialsCheck(dataDir, env),
    ...portChecks(up.parts, interrupted),
    ...queueChecks(dataDir, tools),
  ]);
}

function verdict(reports: readonly Report[]): string {
  const count = (status: string): number =>
    reports.filter((report) => report.status === status).length;
  const [fails, warns] = [count('fail'), count('warn')];
  if (fails > 0)
    return (
      `${fails} to fix before Millrace can run, ${warns} ` +
      `${warns === 1 ? 'warning' : 'warnings'}.`
    );
  if (warns > 0) return `Ready, with ${warns} ${warns === 1 ? 'warning' : 'warnings'}.`;
  return 'Ready.';
}
