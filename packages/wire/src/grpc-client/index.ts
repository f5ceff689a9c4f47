export { CallError } from './call-error.js';
export { Channel, type CallOptions, type ChannelOptions } from './channel.js';
