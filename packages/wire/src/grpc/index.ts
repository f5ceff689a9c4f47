export { createTransport, transportKinds, type TransportKind } from './create-transport.js';
export type { CallEndings } from './endings.js';
export type { Method, Methods, ServerCall, SingleMethod, StreamedMethod } from './methods.js';
export type { RequestQueue } from './requests.js';
export { failed, type GrpcStatus } from './status.js';
export type { GrpcTransport } from './transport.js';
