import { addressText, type Address } from '@millrace/kit/config';
import { listen, type HttpApp } from '@millrace/kit/http';
import type { UndoList } from '@millrace/kit/undo-list';
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
