import { expect, test } from 'vitest';
import { serviceFile } from './service-file.js';

const command = [
  '/opt/my node/bin/node',
  '/opt/100%/ctl',
  'daemon',
  'serve',
  '--data',
  '/a "b" $c',
];
const service = { command, searchPath: '/home/ada/bin:/usr/bin' };

test('a systemd unit of the user, whose words mean what they say', () => {
  const { path, text, commands } = serviceFile('systemd', service, { HOME: '/home/ada' });
  expect(path).toBe('/home/ada/.config/systemd/user/millrace-daemon.service');
  expect(text).toContain(
    'ExecStart="/opt/my node/bin/node" /opt/100%%/ctl daemon serve --data "/a \\"b\\" $$c"\n',
  );
  expect(text).toContain('Environment=PATH=/home/ada/bin:/usr/bin\n');
  expect(text).toContain('WantedBy=default.target\n');
  expect(commands.at(-1)).toBe('systemctl --user enable --now millrace-daemon.service');
});

test('in the search path a dollar is a dollar', () => {
  const odd = { command, searchPath: '/a b/50%/$x' };
  const { text } = serviceFile('systemd', odd, { HOME: '/home/ada' });
  expect(text).toContain('Environment="PATH=/a b/50%%/$x"\n');
});

test('XDG_CONFIG_HOME moves it', () => {
  const env = { HOME: '/home/ada', XDG_CONFIG_HOME: '/cfg' };
  expect(serviceFile('systemd', service, env).path).toMatch(/^\/cfg\/systemd\/user\//);
});

test('a launchd agent that XML understands', () => {
  const odd = { command: ['/a & <b>', 'x'], searchPath: '/bin' };
  const { path, text, commands } = serviceFile('launchd', odd, { HOME: '/Users/ada l' });
  expect(path).toBe('/Users/ada l/Library/LaunchAgents/millrace.daemon.plist');
  expect(text).toContain('<string>/a &amp; &lt;b&gt;</string>\n    <string>x</string>');
  expect(commands).toEqual([`launchctl bootstrap gui/$(id -u) '${path}'`]);
});
