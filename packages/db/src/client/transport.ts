import {
  Client,
  credentials,
  Metadata,
  type ChannelCredentials,
  type ClientReadableStream,
  type ServiceError,
} from '@grpc/grpc-js';
import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import type { ServerAddress } from './address.js';
import { toRefusal } from './failures.js';

/** TLS options for `grpcs://`, as PEM. */
export interface TlsOptions {
  /** CA certificates to trust instead of the system's. */
  ca?: string | Uint8Array | undefined;
  /** Client certificate and key, if the server requires one. */
  certificate?: string | Uint8Array | undefined;
  key?: string | Uint8Array | undefined;
  /** Expected name in the server's certificate, if it differs from the URL. */
  serverName?: string | undefined;
}

export interface Attempt {
  /** Milliseconds since the epoch. */
  deadline?: number | undefined;
  signal?: AbortSignal | undefined;
}

// A watch sends a commit as one message, however large.
const maxReceivedBytes = 64 * 1024 * 1024;

/** One gRPC channel to one server. Does not retry; failures are `CallRefusal`. */
export class Transport {
  readonly url: string;
  readonly #client: Client;
  readonly #metadata = new Metadata();

  constructor(address: ServerAddress, options: { key?: string | undefined; tls?: TlsOptions }) {
    this.url = address.url;
    if (options.key !== undefined) this.#metadata.set('x-api-key', options.key);
    const { serverName } = options.tls ?? {};
    this.#client = new Client(address.target, credentialsFor(address, options.tls), {
      'grpc.max_receive_message_length': maxReceivedBytes,
      'grpc.keepalive_time_ms': 20_000,
      'grpc.keepalive_timeout_ms': 10_000,
      'grpc.initial_reconnect_backoff_ms': 50,
      'grpc.max_reconnect_backoff_ms': 2_000,
      // Retries are made by the session, which knows which calls are safe to repeat.
      'grpc.enable_retries': 0,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.service_config_disable_resolution': 1,
      // Ignores HTTP proxy settings of the environment.
      'grpc.enable_http_proxy': 0,
      ...(serverName === undefined ? {} : { 'grpc.ssl_target_name_override': serverName }),
    });
  }

  unary<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: MessageInitShape<Input>,
    { deadline, signal }: Attempt,
  ): Promise<MessageShape<Output>> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const onAbort = () => {
        call.cancel();
        reject(signal?.reason);
      };
      const call = this.#client.makeUnaryRequest(
        pathOf(method),
        (message: MessageShape<Input>) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes),
        create(method.input, request),
        this.#metadata,
        deadline === undefined ? {} : { deadline },
        (error, reply) => {
          signal?.removeEventListener('abort', onAbort);
          if (error) reject(toRefusal(error, this.url));
          else resolve(reply!);
        },
      );
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** The messages of a stream, with backpressure. Leaving the loop cancels the call. */
  async *stream<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodServerStreaming<Input, Output>,
    request: MessageInitShape<Input>,
    { deadline, signal }: Attempt,
  ): AsyncGenerator<MessageShape<Output>, void, void> {
    signal?.throwIfAborted();
    const call = this.#client.makeServerStreamRequest(
      pathOf(method),
      (message: MessageShape<Input>) => Buffer.from(toBinary(method.input, message)),
      (bytes) => fromBinary(method.output, bytes),
      create(method.input, request),
      this.#metadata,
      deadline === undefined ? {} : { deadline },
    );
    const onAbort = () => call.cancel();
    signal?.addEventListener('abort', onAbort, { once: true });
    // A cancelled call emits an error even if nobody reads it.
    call.on('error', () => undefined);
    try {
      yield* this.#messages(call);
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      call.cancel();
    }
  }

  async *#messages<Message>(
    call: ClientReadableStream<Message>,
  ): AsyncGenerator<Message, void, void> {
    const messages = call[Symbol.asyncIterator]() as AsyncIterator<Message>;
    for (;;) {
      const step = await messages.next().catch((error: unknown) => {
        throw isServiceError(error) ? toRefusal(error, this.url) : error;
      });
      if (step.done) return;
      yield step.value;
    }
  }

  close(): void {
    this.#client.close();
  }
}

function pathOf(method: { name: string; parent: { typeName: string } }): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && 'code' in error && 'details' in error && 'metadata' in error;
}

function credentialsFor(address: ServerAddress, tls: TlsOptions = {}): ChannelCredentials {
  if (!address.isSecure) return credentials.createInsecure();
  return credentials.createSsl(bytesOf(tls.ca), bytesOf(tls.key), bytesOf(tls.certificate));
}

function bytesOf(pem: string | Uint8Array | undefined): Buffer | null {
  return pem === undefined ? null : Buffer.from(pem);
}
