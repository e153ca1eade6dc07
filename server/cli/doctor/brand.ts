import { sentenceOf } from '../../telemetry/log.ts';
import { type Check, type Finding, ok, warning } from './finding.ts';

const REMEDY =
  'it must answer every browser; a path of the host of APP_URL is served by what is in front of the service';

/** Checks that the pictures and links of pages and mails exist. */
export const checkBrand: Check = async function* ({ brand, appUrl }) {
  const linked = {
    APP_LOGO_URL: brand.logo,
    SUPPORT_URL: brand.support,
    TERMS_URL: brand.terms,
    PRIVACY_URL: brand.privacy,
  };
  const addresses = Object.entries(linked).flatMap(([name, address]) =>
    address === undefined || address.startsWith('mailto:') ? [] : [{ name, url: new URL(address, appUrl) }],
  );
  yield* await Promise.all(addresses.map(({ name, url }) => findingOf(name, url)));
};

async function findingOf(name: string, url: URL): Promise<Finding> {
  try {
    const response = await fetch(url);
    await response.body?.cancel();
    const isPicture = response.headers.get('content-type')?.startsWith('image/') === true;
    if (!response.ok) return warning(`${name}: ${url.href} answers ${response.status}`, REMEDY);
    return name === 'APP_LOGO_URL' && !isPicture
      ? warning(
          `${name}: ${url.href} is not a picture`,
          'its content type must be that of a picture, such as image/png',
        )
      : ok(`${name} is there`);
  } catch (error) {
    return warning(`${name}: ${url.href} cannot be read: ${sentenceOf(error)}`, REMEDY);
  }
}
