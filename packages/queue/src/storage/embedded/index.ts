export {
  embeddedPartIn,
  embeddedStoreIn,
  openEmbeddedStore,
  type EmbeddedStoreOptions,
} from './open.js';
