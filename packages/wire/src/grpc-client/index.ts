export { CallError } from './client-call.js';
export { Channel, type CallOptions, type ChannelOptions } from './channel.js';
