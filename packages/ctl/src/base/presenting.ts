import { UsageError } from '@millrace/kit/errors';
import type { Flags, Tools } from './tools.js';

type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

export type PresentFlags = Flags<'interval', 'watch'>;

/** Runs a command that shows something: once, paged if it is long, or again and again. */
export async function present(
  flags: PresentFlags,
  tools: Here,
  show: () => Promise<void>,
): Promise<void> {
  if (flags.watch === true) {
    const { watch } = await import('./watching.js');
    return watch(flags, tools, show);
  }
  if (flags.interval !== undefined) throw new UsageError('--interval needs --watch.');
  const { out, in: input, pager } = tools.terminal;
  if (!out.isScreen || !input.isScreen || pager === undefined) return show();
  const text = await out.capture(show);
  const { rows = 24 } = out.stream as { rows?: number };
  const isLong = text.split('\n').length > rows;
  if (!isLong || !(await paged(text, pager, tools))) out.writeRaw(text);
}

/** Whether the pager has shown the text; one that is not installed has not. */
async function paged(text: string, pager: string, { terminal, lifecycle }: Here) {
  const { spawn } = await import('node:child_process');
  return lifecycle.handOver(async () => {
    // R keeps colours, F and X leave a short text on the screen.
    const env = { LESS: 'FRX', ...terminal.env };
    const child = spawn(pager, { shell: true, stdio: ['pipe', 'inherit', 'ignore'], env });
    // The user may quit before the end of the text.
    child.stdin.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
    child.stdin.end(text);
    const notFound = 127;
    return new Promise<boolean>((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', (code) => resolve(code !== notFound));
    });
  });
}
