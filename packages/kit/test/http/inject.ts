import type { OutgoingHttpHeaders } from 'node:http';
import { onLoopback } from './contract-check.js';
import type { HttpApp } from '../../src/http/index.js';

export interface Injected {
  method?: string;
  url: string;
  headers?: OutgoingHttpHeaders;
  payload?: string;
}

/** Sends one request to an app that does not listen yet. */
export async function inject(
  app: Pick<HttpApp, 'server'>,
  { method, url, headers, payload }: Injected,
) {
  const { status, text, ...rest } = await onLoopback(app, (send) =>
    send({
      path: url,
      ...(method !== undefined && { method }),
      ...(headers !== undefined && { headers }),
      ...(payload !== undefined && { body: payload }),
    }),
  );
  return {
    statusCode: status,
    headers: rest.headers,
    body: text,
    json: () => JSON.parse(text) as Record<string, unknown>,
  };
}
