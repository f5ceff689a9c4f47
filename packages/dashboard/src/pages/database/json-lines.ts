/** Parses newline-delimited JSON from a byte stream. */
export async function* jsonLines<T>(stream: ReadableStream<Uint8Array>): AsyncGenerator<T> {
  const reader = stream.pipeThrough(new TextDecoderStream() as never).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = (await reader.read()) as { done: boolean; value?: string };
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop()!;
      for (const line of lines) if (line !== '') yield JSON.parse(line) as T;
    }
  } finally {
    reader.releaseLock();
  }
}
