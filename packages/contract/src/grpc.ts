/** The standard gRPC messages the database speaks beside its own: errors, health, reflection. */
export * from './generated/google/rpc/error_details_pb.js';
export * from './generated/google/rpc/status_pb.js';
export * from './generated/grpc/health/v1/health_pb.js';
// Both versions name their messages alike; older clients know only v1alpha.
export * as reflectionV1 from './generated/grpc/reflection/v1/reflection_pb.js';
export * as reflectionV1alpha from './generated/grpc/reflection/v1alpha/reflection_pb.js';
