import { textIfAny } from '../../../server/shared/texts/template.ts';
import { text } from './texts.ts';

/** What a scope allows, in words; the name of a scope of another API. */
export const scopeText = (scope: string): string => textIfAny(text, `common.scopes.${scope}`) ?? scope;
