import type { Server } from 'node:http';
import { queueCodes } from '@millrace/contract/queue';
import { addressText, type Address } from '@millrace/kit/config';
import { createApp, listen, serveMetrics, type HttpApp } from '@millrace/kit/http';
import type { Metrics } from '@millrace/kit/metrics';
import type { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import { accessLogOf } from './access-log.js';

export interface ListenerAddress {
  readonly listener: 'http' | 'metrics';
  readonly url: string;
}

/** The open doors of the server. */
export interface Doors {
  readonly addresses: readonly ListenerAddress[];
  /** Rejects when a door falls shut by itself. */
  readonly failed: Promise<void>;
}

/** The metrics are served apart, so that the API can be shown to others and they not. */
export function metricsApp(metrics: Metrics, { clock, random, log }: World): HttpApp {
  const world = { clock, random, log: accessLogOf(log, 'off') };
  const app = createApp({ world, codes: queueCodes });
  serveMetrics(app, metrics);
  return app;
}

export async function openDoors(
  settings: { listen: Address; metrics_listen: Address },
  { api, metrics }: { api: HttpApp; metrics: HttpApp },
  undo: UndoList,
): Promise<Doors> {
  let fail: (reason: unknown) => void = () => undefined;
  const failed = new Promise<void>((_, reject) => (fail = reject));
  // Someone may never look at it.
  failed.catch(() => undefined);
  const open = async (app: HttpApp, address: Address, flag: string) => {
    const { url, close } = await listen(app, addressText(address), { flag });
    undo.add(close);
    const server: Server = app.fastify.server;
    server.on('error', fail);
    return url;
  };
  const addresses: ListenerAddress[] = [
    { listener: 'http', url: await open(api, settings.listen, '--listen') },
    {
      listener: 'metrics',
      url: await open(metrics, settings.metrics_listen, '--metrics-listen'),
    },
  ];
  return { addresses, failed };
}
