export { createTransport, transportKinds, type TransportKind } from './create-transport.js';
export type { CallEndings } from './grpc/endings.js';
export type { Method, Methods, ServerCall, SingleMethod, StreamedMethod } from './grpc/methods.js';
export type { RequestQueue } from './grpc/requests.js';
export { failed, type GrpcStatus } from './grpc/status.js';
export type { GrpcTransport } from './grpc/transport.js';
