export { CallError } from './grpc-client/call-error.js';
export { Channel, type CallOptions, type ChannelOptions } from './grpc-client/channel.js';
