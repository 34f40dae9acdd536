"""Recorded records field by field, against values that were read by eye from the raw answers.

An abstract is given by how it begins and ends, authors by their names; everything else is compared as a whole, so a
field that appears or goes away is noticed.
"""

from typing import Any

import msgspec
import pytest

from tests.contract.ingest.recordings.shelf import needed, read

pytestmark = needed


def day(text: str) -> dict[str, str]:
    return {"at": f"{text}T00:00:00Z", "precision": "day"}


def month(text: str) -> dict[str, str]:
    return {"at": f"{text}-01T00:00:00Z", "precision": "month"}


def year(text: str) -> dict[str, str]:
    return {"at": f"{text}-01-01T00:00:00Z", "precision": "year"}


Case = tuple[str, str, str, int | str, dict[str, Any]]

PUBMED: list[Case] = [
    ("pubmed", "fetch", "pubmed/025", 0, {
        "id": "12091962", "pmid": "12091962", "updated": "2007-11-15T00:00:00Z", "language": "en", "type": "review",
        "title": "The treatment of AIDS behind the walls of correctional facilities",
        "authors": ["J Michael Olivero"], "container": "Social justice (San Francisco, Calif.)",
        "issued": month("1990-03"), "url": "https://pubmed.ncbi.nlm.nih.gov/12091962/",
    }),
    ("pubmed", "fetch", "pubmed/026", 0, {
        "id": "30108519", "pmid": "30108519", "doi": "10.3389/fphys.2018.01034", "pmcid": "PMC6079548",
        "updated": "2018-08-17T00:00:00Z", "language": "en", "type": "article", "issued": day("2018-07-31"),
        "title": 'A "Blood Relationship" Between the Overlooked Minimum Lactate Equivalent and Maximal Lactate Steady'
                 " State in Trained Runners. Back to the Old Days?",
        "abstract": ("Maximal Lactate Steady State (MLSS) and Lactate Threshold (LT) are physiologically-related",
                     "controlling LEmin to be shared, at least partly, with those controlling MLSS."),
        "authors": ["Ibai Garcia-Tabar", "Esteban M Gorostiaga"], "container": "Frontiers in physiology",
        "oa_url": "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC6079548/",
        "url": "https://pubmed.ncbi.nlm.nih.gov/30108519/",
    }),
    ("pubmed", "fetch", "pubmed/032", 0, {
        "id": "23388678", "pmid": "23388678", "doi": "10.1097/adm.0b013e31827f9bdf", "pmcid": "PMC3618545",
        "updated": "2018-11-13T00:00:00Z", "language": "en", "type": "article", "issued": month("2013-03"),
        "title": "Association between risk behaviors and antiretroviral resistance in HIV-infected patients receiving"
                 " opioid agonist treatment",
        "abstract": ("OBJECTIVES: Antiretroviral (ARV) resistance is of concern.",
                     "to decrease transmission of ARV resistant virus, especially in resource limited settings."),
        "authors": ["Jeanette M Tetrault", "Michael J Kozal", "Jennifer Chiarella", "Lynn E Sullivan", "An T Dinh",
                    "David A Fiellin"],
        "container": "Journal of addiction medicine",
        "oa_url": "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC3618545/",
        "url": "https://pubmed.ncbi.nlm.nih.gov/23388678/",
    }),
]  # fmt: skip

CROSSREF: list[Case] = [
    ("crossref", "works", "crossref/001", 0, {
        "id": "10.1007/978-1-4302-0197-7_9", "doi": "10.1007/978-1-4302-0197-7_9",
        "updated": "2024-09-04T22:59:26Z", "title": "Widget Mania: Using a GUI Widget Framework",
        "container": "Practical JavaScript™, DOM Scripting, and Ajax Projects", "publisher": "Apress",
        "type": "chapter", "language": "en", "ids": {"isbn": "9781590598160"},
        "url": "https://doi.org/10.1007/978-1-4302-0197-7_9",
    }),
    ("crossref", "work", "crossref/011", 0, {
        "id": "10.3892/ijo_00000353", "doi": "10.3892/ijo_00000353", "updated": "2024-02-26T10:21:39Z",
        "title": "Human bladder cancer cells undergo cisplatin-induced apoptosis that is associated with"
                 " p53-dependent and p53-independent responses",
        "authors": ["Stravopodis"], "container": "International Journal of Oncology",
        "publisher": "Spandidos Publications", "type": "article", "issued": day("2009-06-26"),
        "url": "https://doi.org/10.3892/ijo_00000353",
    }),
    ("crossref", "work", "crossref/036", 0, {
        "id": "10.2139/ssrn.5186959", "doi": "10.2139/ssrn.5186959", "updated": "2025-03-27T01:40:24Z",
        "title": "Enhanced Flavoprotein Autofluorescence Imaging in Rats Using a Combination of Thin Skull Window and"
                 " Skull-Clearing Reagents",
        "authors": ["Kazuaki Nagasaka", "Yuto Ogawa", "Daisuke Ishii", "Ayane Nagao", "Hitomi Ikarashi",
                    "Naofumi Otsuru", "Hideaki Onishi"],
        "container": "SSRN", "publisher": "Elsevier BV", "type": "preprint", "issued": year("2025"),
        "url": "https://doi.org/10.2139/ssrn.5186959",
    }),
    ("crossref", "work", "crossref/038", 0, {
        "id": "10.31234/osf.io/hq8sd_v1", "doi": "10.31234/osf.io/hq8sd_v1", "updated": "2025-08-22T02:41:54Z",
        "title": "意味的類似度を用いたテキストからの未知知見検出法 --ディープラーニングによるアプローチ--",
        "abstract": ("This study explores an efficient method to extract novel",
                     "ts efficiently, even in multilingual and small datasets."),
        "authors": ["JingHao MA"], "container": "PsyArXiv", "publisher": "Center for Open Science",
        "type": "preprint", "issued": day("2025-08-21"), "license": "cc-by-4.0",
        "url": "https://doi.org/10.31234/osf.io/hq8sd_v1",
    }),
]  # fmt: skip

OPENALEX: list[Case] = [
    ("openalex", "work", "openalex/011", 0, {
        "id": "https://openalex.org/W2741809807", "openalex": "W2741809807", "doi": "10.7717/peerj.4375",
        "pmid": "29456894", "pmcid": "PMC5815332", "ids": {"mag": "2741809807"},
        "updated": "2025-06-11T00:03:37.532706Z", "issued": day("2018-02-13"), "language": "en", "type": "article",
        "title": "The state of OA: a large-scale analysis of the prevalence and impact of Open Access articles",
        "abstract": ("Despite growing interest in Open Access (OA) to scholarly literature, there is a",
                     "esearch using the free oaDOI service, as a way to inform OA policy and practice."),
        "authors": ["Heather Piwowar", "Jason Priem", 9], "container": "PeerJ", "publisher": "PeerJ, Inc.",
        "license": "cc-by", "oa_url": "https://peerj.com/articles/4375.pdf",
        "url": "https://doi.org/10.7717/peerj.4375",
    }),
    ("openalex", "work", "openalex/017", 0, {
        "id": "https://openalex.org/W4230972471", "openalex": "W4230972471", "doi": "10.7600/jspfsm.56.60",
        "updated": "2025-11-06T03:46:38.306776Z", "issued": year("2007"), "language": "en", "type": "article",
        "authors": ["宮地 元彦", "山元 健太"],
        "container": "Japanese Journal of Physical Fitness and Sports Medicine",
        "publisher": "Japanese Society Of Physical Fitness And Sports Medicine",
        "oa_url": "https://www.jstage.jst.go.jp/article/jspfsm/56/1/56_1_60/_pdf",
        "url": "https://doi.org/10.7600/jspfsm.56.60",
    }),
    ("openalex", "work", "openalex/018", 0, {
        "id": "https://openalex.org/W6945048743", "openalex": "W6945048743", "doi": "10.2210/pdb4hhb/pdb",
        "updated": "2025-11-06T03:46:38.306776Z", "issued": day("1984-03-07"), "language": "en", "type": "dataset",
        "title": "THE CRYSTAL STRUCTURE OF HUMAN DEOXYHAEMOGLOBIN AT 1.74 ANGSTROMS RESOLUTION",
        "authors": ["G. Fermi", "M.F. Perutz"], "container": "Worldwide Protein Data Bank",
        "url": "https://doi.org/10.2210/pdb4hhb/pdb",
    }),
]  # fmt: skip

EUROPEPMC: list[Case] = [
    ("europepmc", "search", "europepmc/001", "39709209", {
        "id": "39709209", "pmid": "39709209", "doi": "10.1016/s0140-6736(24)02600-x",
        "ids": {"europepmc": "MED:39709209"}, "updated": "2024-12-22T00:00:00Z", "issued": day("2025-12-01"),
        "title": "Abscopal response in a patient with fibrolamellar hepatocellular carcinoma following radiotherapy",
        "authors": ["JD Schoenfeld", "DA Haas-Kogan", "AF O'Neill"], "container": "Lancet", "type": "article",
        "url": "https://europepmc.org/article/MED/39709209",
    }),
    ("europepmc", "search", "europepmc/001", "PPR1036674", {
        "id": "PPR1036674", "doi": "10.1101/2025.06.13.25329599", "ids": {"europepmc": "PPR:PPR1036674"},
        "updated": "2025-06-18T00:00:00Z", "issued": day("2025-06-16"),
        "title": "Red meat intake interacts with a TGF-β-pathway-based polygenic risk score to impact colorectal"
                 " cancer risk: Application of a novel approach for polygenic risk score construction",
        "authors": ["JS Mendez", "B Queme", 72], "container": "medRxiv", "publisher": "medRxiv", "type": "preprint",
        "url": "https://europepmc.org/article/PPR/PPR1036674",
    }),
    ("europepmc", "search", "europepmc/001", "PMC12175493", {
        "id": "PMC12175493", "pmcid": "PMC12175493", "ids": {"europepmc": "PMC:PMC12175493"},
        "updated": "2025-06-20T00:00:00Z", "issued": day("2025-06-10"),
        "title": "Role of the period family in mediating the interplay between circadian disruption and cancer"
                 " (Review)",
        "authors": ["P Gu", "W Xu", "X Fan", "Q Gao", "Y Wei", "H Zhang", "Y Cui", "Y Han"],
        "container": "Oncology Letters", "type": "review", "oa_url": "https://europepmc.org/articles/PMC12175493",
        "url": "https://europepmc.org/article/PMC/PMC12175493",
    }),
]  # fmt: skip

ARXIV: list[Case] = [
    ("arxiv", "query", "arxiv/001", 0, {
        "id": "2202.12139", "arxiv": "2202.12139", "doi": "10.1109/icstw55395.2022.00035",
        "ids": {"category": "cs.SE", "journal_ref": "Artificial Intelligence in Software Testing @ 2022 IEEE International"
                " Conference on Software Testing, Verification and Validation Workshops (ICSTW)"},
        "updated": "2022-02-24T15:05:19Z",
        "issued": {"at": "2022-02-24T15:05:19Z", "precision": "instant"},
        "title": "Testing Deep Learning Models: A First Comparative Study of Multiple Testing Techniques",
        "abstract": ("Deep Learning (DL) has revolutionized the capabilities of vision-based systems (VBS)",
                     "on a classical benchmark used in VBS and discuss its results."),
        "authors": ["Mohit Kumar Ahuja", "Arnaud Gotlieb", "Helge Spieker"], "container": "arXiv", "type": "preprint",
        "oa_url": "https://arxiv.org/pdf/2202.12139v1", "url": "https://arxiv.org/abs/2202.12139v1",
    }),
    ("arxiv", "query", "arxiv/010", 0, {
        "id": "2104.12255", "arxiv": "2104.12255", "ids": {"category": "cs.CR"}, "updated": "2021-04-20T16:07:14Z",
        "issued": {"at": "2021-04-20T16:07:14Z", "precision": "instant"}, "title": "0",
        "abstract": ("What is the funniest number in cryptography? 0.",
                     "generously awarded $35,000 in total for the reported bugs."),
        "authors": ["Quan Thoi Minh Nguyen"], "container": "arXiv", "type": "preprint",
        "oa_url": "https://arxiv.org/pdf/2104.12255v1", "url": "https://arxiv.org/abs/2104.12255v1",
    }),
    ("arxiv", "oai", "arxiv/012", 0, {
        "id": "oai:arXiv.org:2511.23462", "arxiv": "2511.23462", "ids": {"oai": "oai:arXiv.org:2511.23462"},
        "updated": "2026-02-11T00:00:00Z", "issued": month("2025-11"),
        "title": "Arbitrary control of the temporal waveform of photons during spontaneous emission",
        "abstract": ("Control of the temporal waveform of photons produced during spontaneous emission",
                     "temporal-mode overlap fidelities between emitted and target photon waveforms."),
        "authors": ["Carl Thomas", "Rebecca Munk", "Boris Blinov"], "container": "arXiv", "type": "preprint",
        "license": "http://arxiv.org/licenses/nonexclusive-distrib/1.0/",
        "oa_url": "https://arxiv.org/pdf/2511.23462", "url": "https://arxiv.org/abs/2511.23462",
    }),
    ("arxiv", "oai", "arxiv/014", 0, {
        "id": "oai:arXiv.org:1601.03238", "arxiv": "1601.03238", "doi": "10.1103/physrevd.93.016005",
        "ids": {"oai": "oai:arXiv.org:1601.03238", "report": "YITP-2016-26",
                "journal_ref": "Phys.Rev. D93 (2015) 016005"}, "updated": "2016-01-14T00:00:00Z",
        "issued": day("2016-01-13"),
        "title": "Irreversible degradation of quantum coherence under relativistic motion",
        "abstract": ("We study the dynamics of quantum coherence under Unruh thermal noise",
                     "while it is less sensitive than entanglement to the acceleration of the detector."),
        "authors": ["Planck Collaboration", "Jieci Wang", "Zehua Tian", "Jiliang Jing", "Heng Fan"],
        "container": "arXiv", "type": "preprint", "license": "cc-by-3.0",
        "oa_url": "https://arxiv.org/pdf/1601.03238", "url": "https://arxiv.org/abs/1601.03238",
    }),
]  # fmt: skip

DATACITE: list[Case] = [
    ("datacite", "dois", "datacite/001", 0, {
        "id": "10.5281/zenodo.3596961", "doi": "10.5281/zenodo.3596961", "updated": "2020-01-02T22:21:56Z",
        "title": "ALSETLab/sysml.powersystems.framework: Release Linked to Zenodo",
        "abstract": ("SysML project about design of modeling", "simulation tools for power systems"),
        "authors": ["Francis Gómez"], "publisher": "Zenodo", "type": "software",
        "issued": day("2020-01-02"), "url": "https://zenodo.org/record/3596961",
    }),
    ("datacite", "doi", "datacite/007", 0, {
        "id": "10.4230/lipics.tqc.2013.93", "doi": "10.4230/lipics.tqc.2013.93", "updated": "2023-12-21T12:03:17Z",
        "title": "The Minimum Size of Qubit Unextendible Product Bases",
        "abstract": ("We investigate the problem of constructing unextendible product bases",
                     "ssisted proof that our constructions are indeed the smallest possible."),
        "authors": ["Nathaniel Johnston"], "container": "LIPIcs, Volume 22, TQC 2013",
        "publisher": "Schloss Dagstuhl – Leibniz-Zentrum für Informatik", "type": "conference-paper",
        "issued": year("2013"), "language": "en", "license": "cc-by-3.0",
        "url": "https://drops.dagstuhl.de/entities/document/10.4230/LIPIcs.TQC.2013.93",
    }),
    ("datacite", "doi", "datacite/010", 0, {
        "id": "10.5281/zenodo.15399868", "doi": "10.5281/zenodo.15399868", "updated": "2025-05-15T19:01:56Z",
        "title": "Envisioning the Future of Research: 10 changes for Open Research",
        "authors": ["Daniel Garside", "Joseph Corneli", "Jane Fisher", "Anna Mavromanoli", "Pallab Pradhan",
                    "Nick Bearman"],
        "publisher": "Zenodo", "type": "preprint", "issued": day("2025-05-14"),
        "license": "cc-by-4.0", "url": "https://zenodo.org/doi/10.5281/zenodo.15399868",
    }),
    ("datacite", "doi", "datacite/013", 0, {
        "id": "10.48550/arxiv.2201.06719", "doi": "10.48550/arxiv.2201.06719", "arxiv": "2201.06719",
        "updated": "2022-08-18T01:04:35Z", "issued": year("2022"), "type": "preprint", "license": "cc-by-4.0",
        "title": "Determination of hyperfine splittings and Landé $g_J$ factors of $5s~^2S_{1/2}$ and"
                 " $5p~^2P_{1/2,3/2}$ states of $^{111,113}$Cd$^+$ for a microwave frequency standard",
        "abstract": ("Regarding trapped-ion microwave-frequency standards, we report on the",
                     "racy of the microwave frequency standard based on trapped Cd$^+$ ions."),
        "authors": ["J. Z. Han", "R. Si", "H. R. Qin", "N. C. Xin", "Y. T. Chen", "S. N. Miao", "C. Y. Chen",
                    "J. W. Zhang", "L. J. Wang"],
        "publisher": "arXiv", "url": "https://arxiv.org/abs/2201.06719",
    }),
]  # fmt: skip

SEMANTIC_SCHOLAR: list[Case] = [
    ("semanticscholar", "batch", "semanticscholar/012", 0, {
        "id": "c31c87c591a25c64fbaa82e8ac6a81831b6ac7ce", "doi": "10.2139/ssrn.288970",
        "ids": {"s2": "c31c87c591a25c64fbaa82e8ac6a81831b6ac7ce", "corpusid": "470667", "mag": "2096684396"},
        "updated": "2001-10-01T00:00:00Z", "issued": day("2001-10-01"), "type": "review",
        "title": "How Much Should We Trust Differences-in-Differences Estimates?",
        "abstract": ("Most Difference-in-Difference (DD) papers rely on many years",
                     "ated effects for placebo laws to form the test distribution."),
        "authors": ["Marianne Bertrand", "E. Duflo", "S. Mullainathan"],
        "container": "Experimental & Empirical Studies eJournal",
        "oa_url": "http://papers.nber.org/papers/w8841.pdf",
        "url": "https://www.semanticscholar.org/paper/c31c87c591a25c64fbaa82e8ac6a81831b6ac7ce",
    }),
    ("semanticscholar", "batch", "semanticscholar/012", 1, {
        "id": "cb1ebd913c3724c599f6b276b14b5c6253da68f3", "doi": "10.2139/ssrn.2250500",
        "ids": {"s2": "cb1ebd913c3724c599f6b276b14b5c6253da68f3", "corpusid": "3142471", "mag": "2148197077"},
        "updated": "2013-04-10T00:00:00Z", "issued": day("2013-04-10"),
        "title": "The Miracle of Microfinance? Evidence from a Randomized Evaluation",
        "abstract": ("Microcredit has spread extremely rapidly since its beginning",
                     "t. We show that the intervention increased total MFI borrow."),
        "authors": ["E. Duflo", "A. Banerjee", "R. Glennerster", "Cynthia Kinnan"],
        "container": "ERN: Credit Risk (Topic)",
        "oa_url": "https://dspace.mit.edu/bitstream/1721.1/95941/1/Banerjee_The%20miracle.pdf",
        "url": "https://www.semanticscholar.org/paper/cb1ebd913c3724c599f6b276b14b5c6253da68f3",
    }),
    ("semanticscholar", "batch", "semanticscholar/012", 2, {
        "id": "0f40b1f08821e22e859c6050916cec3667778613", "doi": "10.1257/rct.1355",
        "ids": {"s2": "0f40b1f08821e22e859c6050916cec3667778613", "corpusid": "255313304"},
        "updated": "2023-01-01T00:00:00Z", "issued": year("2023"),
        "title": "Improving Third-Party Audits and Regulatory Compliance in India",
        "abstract": ("Researchers: Esther Duflo Michael Greenstone Nick Ryan Rohin",
                     "l Policy Research (CEEPR), National Science Foundation (NSF)"),
        "authors": ["E. Duflo", "M. Greenstone", "Nick Ryan"],
        "url": "https://www.semanticscholar.org/paper/0f40b1f08821e22e859c6050916cec3667778613",
    }),
]  # fmt: skip

BIORXIV: list[Case] = [
    ("biorxiv", "feed", "biorxiv/003", number, {
        "id": doi, "doi": doi, "title": title, "abstract": abstract, "authors": authors, "container": "bioRxiv",
        "publisher": "Cold Spring Harbor Laboratory Press", "type": "preprint", "updated": "2018-03-23T00:00:00Z",
        "issued": day("2018-03-23"), "url": f"http://biorxiv.org/cgi/content/short/{doi.rpartition('/')[2]}v1?rss=1",
    })
    for number, doi, title, abstract, authors in (
        (0, "10.1101/286609",
         "Neurodynamic explanation of inter-individual and inter-trial variability in cross-modal perception",
         ("A widely used experimental design in multisensory integratio",
          "asis of large-scale FC patterns underlying cross-modal perception."),
         ["V. G. Kumar", "S. Dutta", "S. Talwar", "D. Roy", "A. Banerjee"]),
        (1, "10.1101/287466",
         "Early identity recognition of familiar faces is not dependent on holistic processing",
         ("It is widely accepted that holistic processing is critical for early face recognition, but",
          "as we found eyes, but not mouths, were effective in activating early face recognition."),
         ["S. Mohr", "A. Wang", "A. D. Engell"]),
        (2, "10.1101/286500",
         ("A mutation-independent approach via transcriptional upregulation of a disease modifier gene rescues muscular"
          " dystrophy in vivo."),
         ("Identification of protective and/or pathogenic genetic modifiers provides important insigh",
          "modifier genes and a powerful therapeutic approach for various inherited and acquired diseases."),
         ["D. Kemaladewi", "P. S. Bassi", "K. Lindsay", "S. Erwood", "E. Hyatt", "K. M. Place", "R. Marks",
          "K. I. Gawlik", "M. Durbeej", "E. A. Ivakine", "R. D. Cohn"]),
    )
]  # fmt: skip

DOAJ: list[Case] = [
    ("doaj", "articles", "doaj/001", 0, {
        "id": "00000b689df5492bb15d3ec8927a4f6d", "ids": {"doaj": "00000b689df5492bb15d3ec8927a4f6d"},
        "doi": "10.1038/s41467-020-15686-y", "updated": "2020-11-25T02:27:47Z", "issued": month("2020-04"),
        "title": "Brain insulin sensitivity is linked to adiposity and body fat distribution",
        "abstract": ("Brain insulin action regulates eating behavior and whole-body energy fluxes, however the i",
                     "associates with a favorable body fat distribution."),
        "authors": ["Stephanie Kullmann", "Vera Valenta", 9], "container": "Nature Communications",
        "publisher": "Nature Publishing Group", "type": "article", "language": "en", "license": "cc-by",
        "oa_url": "http://link.springer.com/article/10.1038/s41467-020-15686-y",
        "url": "https://doaj.org/article/00000b689df5492bb15d3ec8927a4f6d",
    }),
    ("doaj", "articles", "doaj/001", 1, {
        "id": "00000d914fd04a18adf84e756444ec98", "ids": {"doaj": "00000d914fd04a18adf84e756444ec98"},
        "updated": "2020-11-25T01:45:46Z", "issued": month("2013-01"),
        "title": "Tomás Eloy Martínez e as (des)memórias de Juan Domingo Perón = Tomás Eloy Martínez and the"
                 " (des)memories of Juan Domingo Perón",
        "abstract": ("O presente artigo centra-se em Las memorias del General (199",
                     "s memorialísticas, biográficas, históricas e autobiográficas"),
        "authors": ["André Luis Mitidieri", "Letícia Batista Guimarães", "Luciana Helena Cajas Mazzutti"],
        "container": "Letras de Hoje", "publisher": "Pontifícia Universidade Católica do Rio Grande do Sul",
        "type": "article", "license": "cc-by",
        "oa_url": "http://revistaseletronicas.pucrs.br/ojs/index.php/fale/article/view/15435/10129",
        "url": "https://doaj.org/article/00000d914fd04a18adf84e756444ec98",
    }),
    ("doaj", "article", "doaj/003", 0, {
        "id": "0005e11ec616453f854070069385e057", "ids": {"doaj": "0005e11ec616453f854070069385e057"},
        "doi": "10.3389/neuro.11.009.2007", "updated": "2020-11-24T23:35:43Z", "issued": month("2008-04"),
        "title": "Where in the brain are the genes expressed",
        "authors": ["Trygve B Leergaard", "Ilya Zaslavsky"], "container": "Frontiers in Neuroinformatics",
        "publisher": "Frontiers Media S.A.", "type": "article", "language": "en",
        "oa_url": "http://journal.frontiersin.org/Journal/10.3389/neuro.11.009.2007/full",
        "url": "https://doaj.org/article/0005e11ec616453f854070069385e057",
    }),
]  # fmt: skip

CLINICAL_TRIALS: list[Case] = [
    ("clinicaltrials", "study", f"clinicaltrials/{number}", 0, {
        "id": nct, "ids": {"nct": nct, "org": org}, "title": title, "abstract": abstract, "publisher": sponsor,
        "container": "ClinicalTrials.gov", "type": "trial", "language": "en", "issued": day(posted),
        "updated": f"{changed}T00:00:00Z", "url": f"https://clinicaltrials.gov/study/{nct}",
        **({"authors": authors} if authors else {}),
    })
    for number, nct, org, title, abstract, sponsor, posted, changed, authors in (
        ("005", "NCT03418623", "GET73 ¹H-MRS",
         "Effect of GET73 on MRS Measures of Central Glutamate and GABA in Individuals With Alcohol Use Disorder",
         ("This study is aimed at examining", "whether GET73..."), "Laboratorio Farmaceutico Ct S.r.l.",
         "2018-02-01", "2020-10-08", ["Raymond F Anton, MD"]),
        ("006", "NCT04207047", "L18006", "Histologic Evaluation of Tissue Following Lutronic System Exposure",
         ("Enrollment of up to 25 subjects; subjects enrolled may be gr",
          "of exposed sites may be taken at investigator's discretion."), "LUTRONIC Corporation",
         "2019-12-20", "2019-12-20", []),
        ("007", "NCT06171568", "APHP230528",
         "Lariboisière Cognitive Assessment: Evaluation of the 1-year Outcomes",
         ("Cognitive sequelae are common following acquired brain injur",
          "ve sequelae are common following acquired brain injuries...."), "Assistance Publique - Hôpitaux de Paris",
         "2023-12-14", "2023-12-14", ["Emmanuel Mandonnet, MD, PhD", "Alexis Schnitzler, MD, PhD"]),
    )
]  # fmt: skip

OAI: list[Case] = [
    ("oaipmh", "records", "oaipmh/001", 0, {
        "id": "https://commons.mla.org/deposits/item/mla:3", "doi": "10.17613/m6rp4c",
        "ids": {"oai": "https://commons.mla.org/deposits/item/mla:3"}, "updated": "2015-05-04T16:57:02Z",
        "title": "Taking Liberties: Academic Freedom and the Humanities",
        "abstract": ("The state of academic freedom today, the particular vulnerability of certain areas of study",
                     "scholarship in the humanities to defenses of academic freedom."),
        "authors": ["Doug Steward"], "publisher": "MLA", "issued": year("2008"), "language": "en",
        "url": "http://dx.doi.org/10.17613/M6RP4C",
    }),
    ("oaipmh", "records", "oaipmh/017", "oai:datadryad.org:10255/dryad.49154", {
        "id": "oai:datadryad.org:10255/dryad.49154", "doi": "10.5061/dryad.b56n0",
        "ids": {"oai": "oai:datadryad.org:10255/dryad.49154"}, "updated": "2015-05-15T13:28:24Z",
        "title": "Data from: Persistent inter- and intraspecific gene exchange within a parallel radiation of"
                 " caterpillar hunter beetles (Calosoma sp.) from the Galápagos",
        "abstract": ("When environmental gradients are repeated on different islands within an archipe",
                     "ped the phylogenetic relationships and the repeated evolution of these ecotypes."),
        "authors": ["Frederik Hendrickx", "Viki Vandomme", "Carl Vangestel", "Thierry Backeljau"],
        "type": "article", "issued": day("2015-05-09"), "url": "http://hdl.handle.net/10255/dryad.49154",
    }),
    ("oaipmh", "records", "oaipmh/022", 0, {
        "id": "oai:nature.com:10.1038/srep22278", "doi": "10.1038/srep22278",
        "ids": {"oai": "oai:nature.com:10.1038/srep22278"}, "updated": "2016-03-07T00:00:00Z",
        "title": "Second magnetization peak effect, vortex dynamics, and flux pinning in 112-type superconductor"
                 " Ca0.8La0.2Fe1−xCoxAs2",
        "authors": ["Wei Zhou", "Xiangzhuo Xing", "Wenjuan Wu", "Haijun Zhao", "Zhixiang Shi"],
        "publisher": "Nature Publishing Group", "type": "article", "issued": day("2016-03-07"), "language": "en",
        "url": "https://doi.org/10.1038/srep22278",
    }),
    ("oaipmh", "records", "oaipmh/024", 0, {
        "id": "http://dx.doi.org/10.4231/R7TQ5ZG3", "doi": "10.4231/r7tq5zg3",
        "ids": {"oai": "http://dx.doi.org/10.4231/R7TQ5ZG3"}, "updated": "2015-12-01T09:16:00Z",
        "title": "PRICLE community composition and soil moisture 2012-2013 [version 1.0]",
        "abstract": ('These data correspond to a paper entitled "Rainfall variability and nitrogen addition',
                     "by Smith, Schuster, and Dukes published in the Journal of Applied Ecology."),
        "type": "dataset", "issued": {"at": "2015-12-01T09:16:00Z", "precision": "instant"},
        "url": "http://dx.doi.org/10.4231/R7TQ5ZG3",
    }),
]  # fmt: skip

ZENODO: list[Case] = [
    ("zenodo", "records", "zenodo/004", 0, {
        "id": "8250015", "doi": "10.5281/zenodo.8250015",
        "ids": {"zenodo": "8250015", "concept": "10.5281/zenodo.8250014"},
        "updated": "2023-08-16T02:26:53.957938Z", "issued": day("2023-08-15"), "license": "cc-by-4.0",
        "title": "Phlorest phylogeny derived from Chang et al. 2015 'Ancestry-constrained phylogenetic analysis"
                 " supports the Indo-European steppe hypothesis'",
        "abstract": ("Cite the source of the dataset as: Chang W, Cathcart C, Hall D, & Garrett A. 2015.",
                     "supports the Indo-European steppe hypothesis. Language, 91(1):194-244."),
        "authors": ["Will Chang", "Chundra Cathcart", 4], "container": "Zenodo", "publisher": "Zenodo",
        "type": "dataset", "oa_url": "https://zenodo.org/records/8250015",
        "url": "https://zenodo.org/records/8250015",
    }),
    ("zenodo", "record", "zenodo/002", 0, {
        "id": "8120771", "doi": "10.5281/zenodo.8120771",
        "ids": {"zenodo": "8120771", "concept": "10.5281/zenodo.8120770"},
        "updated": "2024-11-17T23:30:24.100614Z", "issued": day("2023-07-06"), "license": "cc-by-4.0",
        "language": "en", "title": "A SYSTEMATIC REVIEW OF AUTOPSY FINDINGS IN DEATHS AFTER COVID-19 VACCINATION",
        "abstract": ("Background: The rapid development", "quired for the purpose of clarifying our findings."),
        "authors": ["Nicolas Hulscher, BS", "Paul E. Alexander, PhD", "Richard Amerling, MD", "Heather Gessling, MD",
                    "Roger Hodkinson, MD", "William Makis, MD", "Harvey A. Risch, MD, PhD", "Mark Trozzi, MD",
                    "Peter A. McCullough, MD, MPH"],
        "container": "Science, Public Health Policy and the Law", "publisher": "Zenodo", "type": "preprint",
        "oa_url": "https://zenodo.org/records/8120771", "url": "https://zenodo.org/records/8120771",
    }),
    ("zenodo", "record", "zenodo/003", 0, {
        "id": "3871094", "doi": "10.5281/zenodo.3871094",
        "ids": {"zenodo": "3871094", "concept": "10.5281/zenodo.3862788"},
        "updated": "2024-07-19T19:49:55.245734Z", "issued": day("2020-05-28"), "license": "cc-by-4.0",
        "language": "en", "title": "An open letter to Mehra et al and The Lancet",
        "abstract": ("Open letter to MR Mehra, SS Desai, F Ruschitzka, and AN P",
                     "and to Richard Horton (editor of The Lancet)."),
        "authors": ["James Watson on the behalf of 201 signatories"], "container": "Zenodo", "publisher": "Zenodo",
        "type": "report", "oa_url": "https://zenodo.org/records/3871094",
        "url": "https://zenodo.org/records/3871094",
    }),
]  # fmt: skip

PERSON = "/0000-0002-9341-7985/work/"
ORCID: list[Case] = [
    ("orcid", "works", "orcid/008", 1, {
        "id": f"{PERSON}5011717", "ids": {"orcid_work": f"{PERSON}5011717"}, "doi": "10.1038/npre.2009.2801",
        "updated": "2015-07-16T21:54:13.456000Z", "issued": day("2009-01-21"), "type": "article",
        "title": "Reputation, authority and incentives. Or: How to get rid of the Impact Factor",
    }),
    ("orcid", "works", "orcid/008", 2, {
        "id": f"{PERSON}15536016", "ids": {"orcid_work": f"{PERSON}15536016", "eid": "2-s2.0-84869137070"},
        "updated": "2015-07-24T14:29:38.615000Z", "issued": year("2009"), "type": "conference-paper",
        "title": "PLoS ONE: Background, future development, and article-level metrics",
        "url": "http://www.scopus.com/inward/record.url?eid=2-s2.0-84869137070&partnerID=MN8TOARS",
    }),
    ("orcid", "work", "orcid/010", 0, {
        "id": "/0000-0002-0734-2199/work/40038622", "ids": {"orcid_work": "/0000-0002-0734-2199/work/40038622"},
        "updated": "2018-05-21T09:48:55.938000Z", "issued": year("2012"), "type": "article", "language": "en",
        "title": "Introducing an R package for luminescence dating analysis", "container": "Ancient TL",
        "url": "http://www.ecu.edu/cs-cas/physics/Ancient-Timeline/upload/ATL_30-1-Kreutzer.pdf",
    }),
]  # fmt: skip

CORE_FILES = {
    "102353278": "http://www.st-andrews.ac.uk/~perg/Brierley_Current_Biol_17_2007.pdf",
    "20955435": "http://citeseerx.ist.psu.edu/viewdoc/summary?doi=10.1.1.131.7829",
    "103746797": "http://agroeco.inpa.gov.br/reinaldo/RIBarbosa_ProdCient_Usu_Visitantes/2014%20Aguiar%20Jr%20et%20al"
                 "_Invasion%20Acacia%20mangium%20Amazonian%20savannas.pdf",
}  # fmt: skip
CORE: list[Case] = [
    ("core", "search_v2", "core/001", number, {
        "id": core, "ids": {"core": core, "oai": f"oai:CiteSeerX.psu:{oai}"}, "title": title, "abstract": abstract,
        "authors": authors, "issued": day(issued), "updated": updated, "url": f"https://core.ac.uk/works/{core}",
        "oa_url": CORE_FILES[core],
    })
    for number, core, oai, title, abstract, authors, issued, updated in (
        (0, "102353278", "10.1.1.618.5850", "Dispatch",
         ("ecologists have progressed far beyond this simple duplex, ex",
          "chelatase H subunit is an abscisic acid receptor. Nature 443"),
         ["Rquantitative Ecology Terrestrial", "Fisheries Ecology"], "2015-08-22", "2018-06-20T05:31:00Z"),
        (1, "20955435", "10.1.1.131.7829",
         "Klaus Lichtenegger Stochastic Cellular Automata Models in Disease Spreading",
         ("Dedicated to my family for their encouragement and support,",
          "in ecology (with focus on disease spreading) has been given"),
         ["Ecology"], "2008-12-30", "2018-06-20T21:52:40Z"),
        (3, "103746797", "10.1.1.718.826", "PLEASE SCROLL DOWN FOR ARTICLE",
         ("following planting", "for forestr"), ["Plant Ecology"], "2016-01-16", "2018-06-20T08:26:29Z"),
    )
]  # fmt: skip

CASES = [
    *PUBMED, *CROSSREF, *OPENALEX, *EUROPEPMC, *ARXIV, *DATACITE, *SEMANTIC_SCHOLAR, *BIORXIV, *DOAJ,
    *CLINICAL_TRIALS, *OAI, *ZENODO, *ORCID, *CORE,
]  # fmt: skip


FURTHER = {
    "volume", "issue", "pages", "article_number", "issn", "isbn", "keywords", "mesh", "references", "citations",
    "funders", "relations", "full_text", "notices", "editors",
}  # fmt: skip
"""Fields that `test_values_by_hand` compares."""


@pytest.mark.parametrize(
    ("source", "endpoint", "name", "which", "expected"), CASES, ids=[f"{case[2]}-{case[4]['id']}" for case in CASES]
)
def test_a_work_has_the_values_of_the_raw_record(
    source: str, endpoint: str, name: str, which: int | str, expected: dict[str, Any]
) -> None:
    works = [one.work for one in read(source, endpoint, name) if one.work is not None]
    work = works[which] if isinstance(which, int) else next(one for one in works if one.id == which)
    found: dict[str, Any] = msgspec.to_builtins(work)
    begins, ends = expected.get("abstract", ("", ""))
    abstract = found.pop("abstract", "")
    assert (abstract.startswith(begins), abstract.endswith(ends), bool(abstract)) == (True, True, bool(begins))
    names = [author["name"] for author in found.pop("authors", [])]
    *listed, last = expected.get("authors", [None])
    assert names == [*listed, last] if isinstance(last, str) else names[: len(listed)] == listed
    assert not isinstance(last, int) or len(names) == last
    rest = {key: value for key, value in expected.items() if key not in {"abstract", "authors"}}
    found = {key: value for key, value in found.items() if key not in FURTHER}
    assert found == {"source": source, "endpoint": endpoint, **rest}


def test_authors_of_a_recorded_work_in_full() -> None:
    [one] = read("datacite", "doi", "datacite/010")
    assert one.work is not None
    second = one.work.authors[1]
    assert msgspec.to_builtins(second) == {
        "name": "Joseph Corneli",
        "given": "Joseph",
        "family": "Corneli",
        "orcid": "0000-0003-1330-4698",
        "affiliation": ["Oxford Brookes University", "Hyperreal Enterprises Ltd."],
    }


def test_a_group_is_an_author_with_a_name_only() -> None:
    [one] = read("pubmed", "fetch", "pubmed/027")
    assert one.work is not None
    assert msgspec.to_builtins(one.work.authors[-1]) == {"name": "Canadian Respiratory Research Network"}


def test_474_authors_are_all_there() -> None:
    [one] = read("pubmed", "fetch", "pubmed/007")
    assert one.work is not None
    assert len(one.work.authors) == 474
