import { queueCodes } from '@millrace/contract/queue';
import { addressText, isLoopback, type Address } from '@millrace/kit/config';
import {
  createApp,
  crossSiteHeader,
  listen,
  serveMetrics,
  shownHeader,
  type HttpApp,
} from '@millrace/kit/http';
import type { Metrics } from '@millrace/kit/metrics';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import { fail } from '../operations/base/refusal.js';
import { accessLogOf } from './app.js';
import type { GrpcServer } from './grpc-server.js';

export interface ListenerAddress {
  readonly listener: 'http' | 'metrics' | 'grpc';
  readonly url: string;
}

/** The open listeners of the server. */
export interface Listeners {
  readonly addresses: readonly ListenerAddress[];
  /** Rejects when a listener fails. */
  readonly failed: Promise<void>;
}

/**
 * Metrics have their own listener, so that the API can be exposed without them. On loopback,
 * requests of web pages of other sites are refused.
 */
export function metricsApp(
  metrics: Metrics,
  { clock, random, log }: World,
  { listen: { host }, peerMemory }: { listen: Address; peerMemory: PeerMemory },
): HttpApp {
  const world = { clock, random, log: accessLogOf(log, 'off') };
  const needsLoopbackHost = isLoopback(host);
  const app = createApp({
    world,
    codes: queueCodes,
    peerMemory,
    admit: ({ headers }) => {
      const foreign = crossSiteHeader(headers, { port: listeningPort(app), needsLoopbackHost });
      if (foreign === undefined) return;
      const { header, value } = foreign;
      throw fail('FORBIDDEN', `The ${header} ${shownHeader(value)} is not this machine.`);
    },
  });
  serveMetrics(app, metrics);
  return app;
}

function listeningPort({ server }: HttpApp): number {
  const address = server.node.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

export async function openListeners(
  settings: { listen: Address; metrics_listen: Address; grpc?: Address | undefined },
  { api, metrics, grpc }: { api: HttpApp; metrics: HttpApp; grpc: GrpcServer },
  undo: UndoList,
): Promise<Listeners> {
  let reject: (reason: unknown) => void = () => undefined;
  const failed = new Promise<void>((_, rejectFailed) => (reject = rejectFailed));
  // Prevents an unhandled rejection if nothing awaits it.
  failed.catch(() => undefined);
  const open = async (app: HttpApp, address: Address, flag: string) => {
    const { url, close } = await listen(app, addressText(address), { flag });
    undo.add(close);
    app.server.node.on('error', reject);
    return url;
  };
  const addresses: ListenerAddress[] = [
    { listener: 'http', url: await open(api, settings.listen, '--listen') },
    {
      listener: 'metrics',
      url: await open(metrics, settings.metrics_listen, '--metrics-listen'),
    },
  ];
  undo.add(() => grpc.close());
  if (settings.grpc) {
    addresses.push({ listener: 'grpc', url: await grpc.listen(settings.grpc, reject) });
  }
  return { addresses, failed };
}
