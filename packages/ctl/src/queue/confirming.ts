import { createInterface } from 'node:readline';
import type { Terminal } from '../terminal.js';

/** Asks a person. Anything but a clear yes is a no, the end of the input too. */
export async function confirmed(question: string, terminal: Terminal): Promise<boolean> {
  terminal.err.write(question);
  const lines = createInterface({ input: terminal.in.stream });
  try {
    const answer = await new Promise<string | undefined>((resolve) => {
      lines.once('line', resolve);
      lines.once('close', () => {
        // Whoever presses Ctrl-D leaves the cursor behind the question.
        terminal.err.write('\n');
        resolve(undefined);
      });
    });
    return answer !== undefined && /^y(?:es)?$/i.test(answer.trim());
  } finally {
    lines.removeAllListeners('close');
    lines.close();
  }
}
