export { addressOf, addressText, isLoopback, type Address } from './address.js';
export { dataDirectory } from './data-directory.js';
export {
  defineConfig,
  flagsOf,
  type ConfigDefinition,
  type FlagDescription,
  describeSetting,
  type SettingDescription,
  type ConfigEntry,
  sourceText,
  type Source,
} from './define.js';
export { editYaml, type YamlChange } from './edit-yaml.js';
export {
  readTextFile,
  parseYamlFile,
  parseYamlText,
  readYamlFile,
  type YamlFile,
  type YamlOptions,
} from './yaml-file.js';
export { address, byteSize, count, duration, path, secret, type SettingNotes } from './schema.js';
export { loadConfig, type ConfigInputs, type FlagValue, type LoadedConfig } from './load.js';
export { editDistance, nearest, suggestion } from './nearest.js';
export { readTls, tlsOptions, type TlsFiles } from './tls.js';
