import { createReadStream } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

/** A longer line is split, to bound memory. */
const maxLine = 65_536;

/** Reads every line of a file of any size. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop()!;
    yield* lines;
    while (rest.length > maxLine) {
      yield rest.slice(0, maxLine);
      rest = rest.slice(maxLine);
    }
  }
  rest += decoder.end();
  if (rest !== '') yield rest;
}
