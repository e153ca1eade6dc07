import * as labels from '../../../server/shared/texts/provider-label.ts';
import { text } from './texts.ts';

export const providerLabel = (name: string): string => labels.providerLabel(name, text);
export const providerLabelFirst = (name: string): string => labels.providerLabelFirst(name, text);
export const wayIn = (method: string): string => labels.wayIn(method, text);
