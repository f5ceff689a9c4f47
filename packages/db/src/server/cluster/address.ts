import { UsageError } from '@millrace/kit/errors';

/** Where the cluster keeps its state: etcd servers, and the name under which it does. */
export interface ClusterAddress {
  /** Base URLs of the etcd servers. */
  readonly endpoints: readonly string[];
  readonly name: string;
}

const example = 'etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/name';

/** Parses `etcd://host:port,host:port/name`; `etcds://` uses TLS. The default port is 2379. */
export function parseClusterAddress(url: string): ClusterAddress {
  const match = /^(etcds?):\/\/([^/\s?#@]+)\/([A-Za-z0-9][A-Za-z0-9_.-]{0,63})$/.exec(url);
  if (!match) throw new UsageError(`cluster: "${url}" is not an etcd address; use ${example}`);
  const [, scheme, hosts = '', name = ''] = match;
  const protocol = scheme === 'etcds' ? 'https' : 'http';
  const endpoints = hosts.split(',').map((host) => endpointOf(protocol, host, url));
  return { endpoints, name };
}

function endpointOf(protocol: string, host: string, url: string): string {
  const match = /^(\[[0-9A-Fa-f:.%]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(host);
  const port = Number(match?.[2] ?? 2379);
  if (!match || port < 1 || port > 65_535) {
    throw new UsageError(`cluster: "${host}" in "${url}" is not a host and port; use ${example}`);
  }
  return `${protocol}://${match[1]}:${port}`;
}
