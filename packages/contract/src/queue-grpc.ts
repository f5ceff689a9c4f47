/** The queue's gRPC service and its messages, and the standard error details. */
export * from './generated/google/rpc/error_details_pb.js';
export * from './generated/google/rpc/status_pb.js';
export * from './generated/queue/v1/queue_pb.js';
export * from './generated/queue/v1/session_pb.js';
