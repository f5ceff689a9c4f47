import { request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { HttpApp } from './app.js';
import { listen } from './listen.js';

export interface LoopbackRequest {
  method?: string;
  path: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Uint8Array;
}

export interface LoopbackResponse {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

export type LoopbackSend = (request: LoopbackRequest) => Promise<LoopbackResponse>;

/** Serves an app on a free loopback port while `use` sends it requests. For tests. */
export async function onLoopback<Result>(
  app: Pick<HttpApp, 'server'>,
  use: (send: LoopbackSend) => Promise<Result>,
): Promise<Result> {
  const listener = await listen(app, '127.0.0.1:0');
  try {
    return await use((request) => send(listener.url, request));
  } finally {
    await listener.close();
  }
}

function send(
  url: string,
  { method = 'GET', path, headers = {}, body }: LoopbackRequest,
): Promise<LoopbackResponse> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, path, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode!, headers: response.headers, text });
      });
    });
    sent.on('error', reject).end(body);
  });
}
