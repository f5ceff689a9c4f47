export { addressOf, addressText, isLoopback, type Address } from './address.js';
export { dataDirectory } from './data-directory.js';
export { defineConfig, flagsOf, type ConfigDefinition, type FlagDescription } from './define.js';
export { describeSetting, type SettingDescription } from './describe.js';
export { editYaml, type YamlChange } from './edit-yaml.js';
export type { ConfigEntry } from './entries.js';
export { readTextFile } from './text-file.js';
export { address, byteSize, count, duration, path, secret } from './fields.js';
export { loadConfig, type ConfigInputs, type FlagValue, type LoadedConfig } from './load.js';
export { editDistance, nearest, suggestion } from './nearest.js';
export type { SettingNotes } from './schema.js';
export { sourceText, type Source } from './source.js';
export { readTls, tlsOptions, type TlsFiles } from './tls.js';
export {
  parseYamlFile,
  parseYamlText,
  readYamlFile,
  type YamlFile,
  type YamlOptions,
} from './yaml-file.js';
