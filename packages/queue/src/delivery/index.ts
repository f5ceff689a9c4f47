import { Delivery, type DeliveryOptions } from './delivery.js';

export type { AsyncResult } from './async-work.js';
export type { Delivery, DeliveryOptions } from './delivery.js';

export function createDelivery(options: DeliveryOptions): Delivery {
  return new Delivery(options);
}
