import {
  type Client,
  type ClientReadableStream,
  credentials,
  loadPackageDefinition,
  Metadata,
  type CallOptions,
  type ChannelCredentials,
  type ServiceError,
  status as grpcCode,
} from '@grpc/grpc-js';
import { decode, definition, type Message } from './proto.js';

type Callback = (error: ServiceError | null, answer: Message) => void;
type Unary = (request: Message, metadata: Metadata, options: CallOptions, done: Callback) => void;
type Streaming = (
  request: Message,
  metadata: Metadata,
  options: CallOptions,
) => ClientReadableStream<Message>;
type Stub = Client & Record<string, Unary & Streaming>;
type StubMaker = new (target: string, channel: ChannelCredentials, options?: object) => Stub;

const packages = loadPackageDefinition(definition) as unknown as {
  millrace: { db: { v1: { Database: StubMaker } } };
  grpc: { health: { v1: { Health: StubMaker } } };
};

export interface CallSettings {
  key?: string;
  bearer?: string;
  timeoutMs?: number;
}

/** The error of a call with decoded details. */
export interface Failure {
  code: string;
  message: string;
  reason: string;
  domain: string;
  metadata: Record<string, string>;
  details: Message[];
}

const streaming = ['Find', 'Aggregate', 'Watch', 'Backup'];

/** An independent client: the proto files and the public gRPC libraries. */
export class GrpcClient {
  readonly #database: Stub;
  readonly #health: Stub;

  constructor(
    target: string,
    channel: ChannelCredentials = credentials.createInsecure(),
    options: object = {},
  ) {
    const all = { 'grpc.max_receive_message_length': 64 * 1024 * 1024, ...options };
    this.#database = new packages.millrace.db.v1.Database(target, channel, all);
    this.#health = new packages.grpc.health.v1.Health(target, channel, all);
  }

  close(): void {
    this.#database.close();
    this.#health.close();
  }

  call(method: string, request: Message = {}, settings: CallSettings = {}): Promise<Message> {
    return unary(this.#database, method, request, settings);
  }

  stream(
    method: string,
    request: Message = {},
    settings: CallSettings = {},
  ): ClientReadableStream<Message> {
    return this.#database[method]!(request, ...envelope(settings));
  }

  /** All messages of a stream that ends. */
  collect(method: string, request: Message = {}, settings: CallSettings = {}): Promise<Message[]> {
    return collect(this.stream(method, request, settings));
  }

  health(service = ''): Promise<Message> {
    return unary(this.#health, 'Check', { service }, { timeoutMs: 5_000 });
  }

  healthWatch(service = ''): ClientReadableStream<Message> {
    return this.#health['Watch']!({ service }, ...envelope({}));
  }

  healthList(): Promise<Message> {
    return unary(this.#health, 'List', {}, {});
  }

  /** The refusal of a call that must fail. */
  async refusal(
    method: string,
    request: Message = {},
    settings: CallSettings = {},
  ): Promise<Failure> {
    const call: Promise<unknown> = streaming.includes(method)
      ? this.collect(method, request, settings)
      : this.call(method, request, settings);
    return failureOf(
      await call.then(
        (answer) => new Error(`${method} was not refused: ${JSON.stringify(answer)}`),
        (reason: unknown) => reason,
      ),
    );
  }
}

export async function collect(stream: ClientReadableStream<Message>): Promise<Message[]> {
  const messages: Message[] = [];
  await new Promise<void>((resolve, reject) => {
    stream.on('data', (message: Message) => messages.push(message));
    stream.on('end', resolve);
    stream.on('error', reject);
  });
  return messages;
}

function envelope({ key, bearer, timeoutMs }: CallSettings): [Metadata, CallOptions] {
  const metadata = new Metadata();
  if (key !== undefined) metadata.set('x-api-key', key);
  if (bearer !== undefined) metadata.set('authorization', `Bearer ${bearer}`);
  return [metadata, timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs }];
}

function unary(
  stub: Stub,
  method: string,
  request: Message,
  settings: CallSettings,
): Promise<Message> {
  return new Promise((resolve, reject) => {
    stub[method]!(request, ...envelope(settings), (error, answer) =>
      error ? reject(error) : resolve(answer),
    );
  });
}

export function failureOf(reason: unknown): Failure {
  const error = reason as ServiceError;
  if (typeof error.code !== 'number') throw error;
  const [packed] = error.metadata?.get('grpc-status-details-bin') ?? [];
  const details = packed instanceof Buffer ? detailsOf(packed) : [];
  const info = details.find((detail) => String(detail['@type']).endsWith('ErrorInfo')) ?? {};
  return {
    code: grpcCode[error.code]!,
    message: error.details,
    reason: String(info['reason'] ?? ''),
    domain: String(info['domain'] ?? ''),
    metadata: (info['metadata'] ?? {}) as Record<string, string>,
    details,
  };
}

function detailsOf(bytes: Buffer): Message[] {
  const { details } = decode('google.rpc.Status', bytes) as {
    details: { type_url: string; value: Buffer }[];
  };
  return details.map(({ type_url: url, value }) => ({
    '@type': url,
    ...decode(url.slice(url.lastIndexOf('/') + 1), value),
  }));
}
