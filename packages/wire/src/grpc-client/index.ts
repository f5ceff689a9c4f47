export { CallError, callError, type CallObserver } from './client-call.js';
export { Channel, type CallOptions, type ChannelOptions, type DuplexCall } from './channel.js';
