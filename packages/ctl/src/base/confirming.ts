import { createInterface } from 'node:readline';
import type { Terminal } from './terminal.js';

/** Asks for confirmation. Everything but yes means no, and so does the end of the input. */
export async function confirmed(question: string, terminal: Terminal): Promise<boolean> {
  terminal.err.write(question);
  const lines = createInterface({ input: terminal.in.stream });
  try {
    const answer = await new Promise<string | undefined>((resolve) => {
      lines.once('line', resolve);
      lines.once('close', () => {
        // Ctrl-D leaves the cursor behind the question.
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
