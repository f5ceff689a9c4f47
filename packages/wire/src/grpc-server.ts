export type { CallAbortReasons } from './grpc/abort-reasons.js';
export type {
  Method,
  Methods,
  ServerCall,
  SingleRequestMethod,
  RequestStreamMethod,
} from './grpc/methods.js';
export type { RequestQueue } from './grpc/requests.js';
export { errorStatus, type GrpcCode, type GrpcStatus, type TransportFault } from './grpc/status.js';
export { GrpcTransport } from './grpc/transport.js';
