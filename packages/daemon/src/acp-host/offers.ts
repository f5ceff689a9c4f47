import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import type { HostState, Offer } from './state.js';

type Offers = Pick<HostState, 'model' | 'models' | 'modelConfigId' | 'mode' | 'modes'>;

/** The modes and models that a session offers. */
export function offersIn(opened: {
  modes?: SessionModeState | null;
  configOptions?: SessionConfigOption[] | null;
}): Partial<Offers> {
  const { modes, configOptions } = opened;
  return {
    ...(modes && {
      mode: modes.currentModeId,
      modes: modes.availableModes.map(({ id, name }) => ({ id, name })),
    }),
    ...modelsIn(configOptions ?? []),
  };
}

export function withConfig(state: HostState, options: SessionConfigOption[]): Partial<Offers> {
  const { model, models, modelConfigId } = { ...state, ...modelsIn(options) };
  return { model, models, modelConfigId };
}

function modelsIn(options: readonly SessionConfigOption[]): Partial<Offers> {
  const found = options.find(({ category, type }) => category === 'model' && type === 'select');
  if (found?.type !== 'select') return {};
  const models = found.options.flatMap((each): Offer[] =>
    'options' in each
      ? each.options.map(({ value, name }) => ({ id: value, name }))
      : [{ id: each.value, name: each.name }],
  );
  return { model: found.currentValue, models, modelConfigId: found.id };
}
