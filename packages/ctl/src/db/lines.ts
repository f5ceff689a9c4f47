import { Refusal } from '@millrace/kit/errors';

// A record has at most 2 MiB, and a request 4 MiB; JSON may escape every character of it.
const maxLineLength = 32 * 1024 * 1024;

/** Lines of a stream. Unlike readline, it reports read errors and lines without an end. */
export async function* linesOf(
  input: AsyncIterable<string | Buffer>,
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of input) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    if (rest.length > maxLineLength) {
      const limit = `${maxLineLength / 2 ** 20} MiB`;
      throw new Refusal(
        'LINE_TOO_LONG',
        `A line has more than ${limit}; write one record per line.`,
      );
    }
    for (const line of lines) yield line.replace(/\r$/, '');
  }
  rest += decoder.decode();
  if (rest !== '') yield rest.replace(/\r$/, '');
}
