export { embeddedStoreIn, openEmbeddedStore, type EmbeddedStoreOptions } from './open.js';
