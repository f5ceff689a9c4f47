export type CampaignReason = 'browser' | 'process' | 'store' | 'transport' | 'docs' | 'cases';
export declare const campaignTags: Readonly<Record<string, string>>;
export declare const campaignPattern: string;
export declare const isFullCampaign: boolean;
export declare const tags: { name: string; description: string; skip?: boolean }[];
export declare function isInCampaign(file: string, text: string): boolean;
export declare function campaignFiles(): string[];
export declare function testFiles(): string[];
export declare function wholeFiles(): { file: string; tag: string | undefined }[];
