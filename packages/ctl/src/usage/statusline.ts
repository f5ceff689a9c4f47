import { systemClock } from '@millrace/kit/clock';
import { dayOf, lineOf, readFigures, type AgentFacts } from './statusline-file.js';

/*
 * One line for the status line of an agent. It must come within 50 ms, so it is made from figures
 * that were written down before, and another process brings them up to date for the next call.
 * Nothing heavy may be imported here.
 */

/** Younger figures are shown as they are. */
const freshMs = 30_000;
/** Older ones are not shown at all. */
const maxAgeMs = 600_000;
/** An agent writes its facts at once. */
const inputWaitMs = 30;

/** Writes the line. Waits for new figures only when there are none that can be shown. */
export async function printStatusline(outside: NodeJS.Process): Promise<void> {
  const { env, stdin, stdout, stderr, argv } = outside;
  const now = systemClock.now();
  const known = readFigures(env);
  const isShowable = known && now - known.at < maxAgeMs && known.day === dayOf(now);
  const input = inputOf(stdin);
  let figures = known;
  if (!isShowable) {
    const { refreshFigures } = await import('./statusline-figures.js');
    figures = await refreshFigures(env, stderr);
  } else if (now - known.at > freshMs) {
    const { spawn } = await import('node:child_process');
    const again = [argv[1]!, 'usage', 'statusline', '--refresh'];
    spawn(argv[0]!, again, { detached: true, stdio: 'ignore', env }).unref();
  }
  stdout.write(`${lineOf(figures!, await input, now)}\n`);
  stdin.destroy();
}

/** What the agent says of itself: JSON on standard input, if it comes soon. */
async function inputOf(stdin: NodeJS.ReadStream): Promise<AgentFacts> {
  if (stdin.isTTY) return {};
  const chunks: Buffer[] = [];
  await new Promise<void>((resolve) => {
    // What has arrived while this process was busy is read before it gives up.
    const timer = systemClock.after(inputWaitMs, () => setImmediate(resolve));
    const end = () => {
      timer.cancel();
      resolve();
    };
    stdin
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', end)
      .on('error', end);
  });
  try {
    return (JSON.parse(Buffer.concat(chunks).toString()) as AgentFacts | null) ?? {};
  } catch {
    return {};
  }
}
