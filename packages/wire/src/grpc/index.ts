export type { CallAbortReasons } from './abort-reasons.js';
export type {
  Method,
  Methods,
  ServerCall,
  SingleRequestMethod,
  RequestStreamMethod,
} from './methods.js';
export type { RequestQueue } from './requests.js';
export {
  errorStatus,
  type GrpcCode,
  type GrpcStatus,
  type TransportFault,
} from '../base/status.js';
export { GrpcTransport } from './transport.js';
