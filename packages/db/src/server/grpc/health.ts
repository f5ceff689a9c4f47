import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  status as grpcCode,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { Database as Api } from '@millrace/contract/db';
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
} from '@millrace/contract/grpc';

/** What `grpc.health.v1.Health` says: serving until the shutdown begins. */
export class Health {
  readonly #services: ReadonlySet<string> = new Set(['', Api.typeName]);
  readonly #watchers = new Set<{ send(): void; end(): void }>();
  #serving = true;

  get isServing(): boolean {
    return this.#serving;
  }

  /** Tells everyone who watches that no more calls are taken. */
  stopServing(): void {
    if (!this.#serving) return;
    this.#serving = false;
    for (const watcher of this.#watchers) watcher.send();
  }

  /** Ends the streams of those who watch, which would keep the server from ending. */
  close(): void {
    for (const watcher of this.#watchers) watcher.end();
  }

  get handlers(): UntypedServiceImplementation {
    return { Check: this.#check, Watch: this.#watch, List: this.#list };
  }

  readonly #check: handleUnaryCall<Buffer, Buffer> = (call, callback) => {
    const { service } = fromBinary(HealthCheckRequestSchema, call.request);
    if (this.#services.has(service)) callback(null, this.#message(service));
    else callback({ code: grpcCode.NOT_FOUND, details: `There is no service "${service}" here.` });
  };

  readonly #list: handleUnaryCall<Buffer, Buffer> = (_call, callback) => {
    const statuses = Object.fromEntries(
      [...this.#services].map((service) => [service, { status: this.#statusOf(service) }]),
    );
    const answer = create(HealthListResponseSchema, { statuses });
    callback(null, Buffer.from(toBinary(HealthListResponseSchema, answer)));
  };

  readonly #watch: handleServerStreamingCall<Buffer, Buffer> = (call) => {
    const { service } = fromBinary(HealthCheckRequestSchema, call.request);
    const watcher = {
      send: () => void call.write(this.#message(service)),
      end: () => void call.end(),
    };
    this.#watchers.add(watcher);
    call.on('cancelled', () => this.#watchers.delete(watcher));
    watcher.send();
  };

  #message(service: string): Buffer {
    const answer = create(HealthCheckResponseSchema, { status: this.#statusOf(service) });
    return Buffer.from(toBinary(HealthCheckResponseSchema, answer));
  }

  #statusOf(service: string): ServingStatus {
    if (!this.#services.has(service)) return ServingStatus.SERVICE_UNKNOWN;
    return this.#serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  }
}
