import { Delivery, type DeliveryOptions } from './delivery.js';

export type { Delivery, DeliveryOptions } from './delivery.js';
export type { ReportResult, TaskReport } from './handler-reports.js';

export function createDelivery(options: DeliveryOptions): Delivery {
  return new Delivery(options);
}
export { abandoned } from './handler-reports.js';
