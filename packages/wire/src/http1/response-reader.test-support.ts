import { once } from 'node:events';
import { request } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { ResponseReader } from './response-reader.js';
import type { ResponseHead } from './response-head.js';
import { Failure } from '../base/failure.js';

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

export interface ReadAnswer extends Answer {
  keepsAlive: boolean;
  keepAliveMs: number | undefined;
  /** How many pieces it took. */
  pieces: number;
}

export interface ReadOptions {
  isHeadOnly?: boolean;
  /** Whether the peer closes behind the last piece. */
  isClosed?: boolean;
}

/** What the reader makes of an answer in these pieces; a string says why it is none. */
export function readPieces(pieces: readonly Buffer[], options: ReadOptions = {}) {
  const reader = new ResponseReader();
  let head: ResponseHead | undefined;
  const body: Buffer[] = [];
  const sink = {
    headArrived: (arrived: ResponseHead) => void (head = arrived),
    bodyArrived: (bytes: Buffer) => body.push(Buffer.from(bytes)) > 0,
  };
  reader.begin(sink, options.isHeadOnly ?? false);
  const answer = (taken: number): ReadAnswer => ({
    pieces: taken,
    status: head!.status,
    headers: { ...head!.headers },
    body: Buffer.concat(body).toString('latin1'),
    keepsAlive: reader.keepsAlive,
    keepAliveMs: reader.keepAliveMs,
  });
  try {
    for (const [i, piece] of pieces.entries()) {
      if (reader.read(piece) === 'more') continue;
      const read = answer(i + 1);
      return i < pieces.length - 1 ? { ...read, keepsAlive: false } : read;
    }
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
  if (options.isClosed && reader.ended()) return answer(pieces.length);
  return options.isClosed ? 'cut short' : 'unfinished';
}

/** What Node's own client makes of the same bytes; undefined when it refuses them. */
export async function openNodeReader() {
  let answer: Buffer = Buffer.alloc(0);
  const server = createServer((socket: Socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => socket.end(answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address!.port : 0;
  return {
    close: () => server.close(),
    read(bytes: Buffer, method: 'GET' | 'HEAD'): Promise<Answer | undefined> {
      answer = bytes;
      return new Promise((resolve) => {
        let read: Answer | undefined;
        const requested = request({ host: '127.0.0.1', port, method, agent: false }, (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', () => undefined);
          response.on('end', () => {
            if (!response.complete) return;
            const body = Buffer.concat(chunks).toString('latin1');
            const headers = byName(response.rawHeaders);
            read = { status: response.statusCode ?? 0, headers, body };
          });
        });
        requested.on('error', () => undefined);
        // After everything that it has to say about the response.
        requested.on('close', () => setImmediate(() => resolve(read)));
        requested.end();
      });
    },
  };
}

function byName(list: readonly string[]): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i]!.toLowerCase();
    const value = list[i + 1]!.replace(/^[\t ]+|[\t ]+$/g, '');
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else headers[name] = [before, value].flat();
  }
  return headers;
}
