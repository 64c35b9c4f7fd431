//! The page around tables and flame graphs.

use std::io::{self, Write};

use super::anchor::Anchors;
use super::table::{push_figures, push_notes, push_table, push_warning};
use super::{Block, Report, Section, heat};
use crate::assets;
use crate::chart::{Chart, Forest};
use crate::embed::{append, markup};
use crate::flamegraph::layout::Layout;
use crate::flamegraph::{self, Subject, data, palette};
use stepscope_model::note::ShownNotes;
use stepscope_model::quantity::{grouped, weight};

/// A section with its anchor and those of the sections within it.
struct Placed<'a> {
    section: &'a Section,
    anchor: String,
    within: Vec<Placed<'a>>,
}

impl<'a> Placed<'a> {
    fn all(sections: &'a [Section], within: &str, anchors: &mut Anchors) -> Vec<Self> {
        let place = |section: &'a Section| {
            let anchor = anchors.give(within, &section.anchor, &section.title);
            let within = Self::all(&section.sections, &anchor, anchors);
            Self { section, anchor, within }
        };
        sections.iter().map(place).collect()
    }
}

/// Writes the whole document.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let sections = Placed::all(&report.sections, "", &mut Anchors::default());
    write_head(report, out)?;
    let mut html = String::new();
    push_contents(&sections, &mut html);
    push_masthead(report, &mut html);
    out.write_all(html.as_bytes())?;
    let mut shown = ShownNotes::default();
    shown.add(&report.warnings);
    for placed in &sections {
        write_section(placed, TOP, &mut shown, out)?;
    }
    write!(
        out,
        "</main>\n<noscript><p class=\"note\">Without scripts, tables show their first rows and flame graphs are not drawn.</p></noscript>\n\
         <script>{}</script>\n</body>\n</html>\n",
        assets::REPORT_JS
    )
}

fn write_head(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    // Styles are inline only; their one source is this program, and names never reach them.
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{policy}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"stepscope {version}\">\n\
         <title>{title}</title>\n<style>{frames}{heat}{flame}{charts}{page}</style>\n</head>\n",
        policy = assets::REPORT_JS_HASH.trim_end(),
        version = env!("CARGO_PKG_VERSION"),
        title = markup(&report.title),
        frames = palette::style_sheet(),
        heat = heat::style_sheet(),
        flame = assets::FLAMEGRAPH_CSS,
        charts = assets::CHART_CSS,
        page = assets::REPORT_CSS,
    )
}

fn push_contents(sections: &[Placed<'_>], html: &mut String) {
    html.push_str("<body>\n<a class=\"skip\" href=\"#content\">Skip the contents</a>\n");
    html.push_str("<nav class=\"contents\" aria-label=\"Contents\"><details open><summary>Contents</summary>\n");
    push_entries(sections, html);
    html.push_str("</details></nav>\n<main id=\"content\" tabindex=\"-1\">\n");
}

fn push_entries(sections: &[Placed<'_>], html: &mut String) {
    if sections.is_empty() {
        return;
    }
    html.push_str("<ol>\n");
    for Placed { section, anchor, within } in sections {
        append!(*html, "<li><a href=\"#{}\">{}</a>\n", markup(anchor), markup(&section.title));
        push_entries(within, html);
        html.push_str("</li>\n");
    }
    html.push_str("</ol>\n");
}

fn push_masthead(report: &Report, html: &mut String) {
    append!(*html, "<header class=\"masthead\"><h1>{}</h1>\n", markup(&report.title));
    if !report.subtitle.is_empty() {
        append!(*html, "<p class=\"subtitle\">{}</p>\n", markup(&report.subtitle));
    }
    if !report.about.is_empty() {
        html.push_str("<dl class=\"about\">\n");
        for fact in &report.about {
            append!(*html, "<div><dt>{}</dt><dd>{}</dd></div>\n", markup(&fact.name), markup(&fact.value));
        }
        html.push_str("</dl>\n");
    }
    for warning in ShownNotes::default().add(&report.warnings) {
        push_warning(&warning, html);
    }
    html.push_str("</header>\n");
}

/// Level of the headings of sections that are in no other section.
const TOP: usize = 2;

/// Notes appear once in a section of the top level.
fn write_section(placed: &Placed<'_>, level: usize, shown: &mut ShownNotes, out: &mut dyn Write) -> io::Result<()> {
    let notes_above = shown.count();
    let Placed { section, anchor, within } = placed;
    let mut html = String::new();
    let (heading, anchor) = (level.min(6), markup(anchor));
    append!(
        html,
        "<section id=\"{anchor}\" class=\"level{heading}\">\n<h{heading}>{} <a class=\"link\" href=\"#{anchor}\" aria-label=\"Link to this section\">#</a></h{heading}>\n",
        markup(&section.title)
    );
    push_notes(&section.notes, shown, &mut html);
    let mut graphs = 0;
    let mut next_flame = || {
        graphs += 1;
        let number = if graphs == 1 { String::new() } else { graphs.to_string() };
        format!("{anchor}/flame{number}")
    };
    for block in &section.blocks {
        match block {
            Block::Figures(table) => push_figures(table, shown, &mut html),
            Block::Table(table) => {
                let heading = Some(table.title.as_str()).filter(|title| !title.is_empty() && *title != section.title);
                push_table(table, heading, shown, &mut html);
            }
            Block::Chart(chart) => push_chart(chart, shown, &mut html),
            Block::Forest(forest) => push_forest(forest, &mut html),
            Block::FlameGraph(tree, options) => {
                push_flame_graph(&Subject { tree, difference: None }, options, &next_flame(), &mut html);
            }
            Block::Difference(difference) => {
                let options = flamegraph::Options::of_difference();
                push_flame_graph(&Subject::of(difference), &options, &next_flame(), &mut html);
            }
        }
        out.write_all(html.as_bytes())?;
        html.clear();
    }
    out.write_all(html.as_bytes())?;
    for placed in within {
        write_section(placed, level + 1, shown, out)?;
    }
    if level == TOP {
        shown.truncate(notes_above);
    }
    out.write_all(b"</section>\n")
}

/// The picture, and below it the values for those who want them, or cannot see it.
fn push_chart(chart: &Chart, shown: &mut ShownNotes, html: &mut String) {
    append!(*html, "<figure class=\"charted\"><figcaption>{}</figcaption>\n", markup(&chart.table.title));
    html.push_str("<div class=\"scroll\">");
    html.push_str(&chart.svg());
    html.push_str("</div>\n<details><summary>Values</summary>\n");
    push_table(&chart.table, None, shown, html);
    html.push_str("</details></figure>\n");
}

/// The picture, unless there is nothing to draw.
fn push_forest(forest: &Forest, html: &mut String) {
    let svg = forest.svg();
    if svg.is_empty() {
        return;
    }
    append!(*html, "<figure class=\"charted\"><figcaption>{}</figcaption>\n", markup(&forest.table.title));
    append!(*html, "<div class=\"scroll\">{svg}</div></figure>\n");
}

/// The tree's data, and what stands in the graph's place until it is drawn.
fn push_flame_graph(subject: &Subject<'_>, options: &flamegraph::Options, id: &str, html: &mut String) {
    let tree = subject.tree;
    let layout = Layout::of(tree);
    let modules = data::heaviest_modules(tree);
    let whole = u64::try_from(layout.whole()).unwrap_or(u64::MAX);
    append!(
        *html,
        "<div class=\"flame\" id=\"{id}\"><p class=\"pending\"><b>{}</b> {} <span>{} in {} frames</span></p>\n",
        markup(&tree.title),
        markup(&tree.subtitle),
        markup(&weight(whole, &tree.unit)),
        grouped(tree.nodes.len() as i128),
    );
    html.push_str("<script type=\"application/json\" class=\"flame-data\">");
    html.push_str(&data::encode(subject, &layout, &modules, options));
    html.push_str("</script></div>\n");
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Table, note};

    use super::*;
    use crate::flamegraph::fixture::tree;

    fn page_of(report: &Report) -> String {
        let mut page = Vec::new();
        write(report, &mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn sections_are_listed_and_have_anchors_that_start_with_those_around_them() {
        let report = Report::new("Run")
            .section(Section::new("Rank").anchor("rank"))
            .section(Section::new("shapes").section(Section::new("Hot spots")).section(Section::new("Hot spots")));
        let page = page_of(&report);
        for anchor in ["rank", "shapes", "shapes/hot-spots", "shapes/hot-spots-2"] {
            assert!(page.contains(&format!("<a href=\"#{anchor}\">")), "{anchor}");
            assert!(page.contains(&format!("<section id=\"{anchor}\" ")), "{anchor}");
        }
        assert!(page.contains("<h2>shapes ") && page.contains("<h3>Hot spots "));
    }

    #[test]
    fn sections_within_sections_without_end_have_headings_that_html_knows() {
        let deep = (0..20).fold(Section::new("leaf"), |section, _| Section::new("branch").section(section));
        let page = page_of(&Report::new("Run").section(deep));
        assert!(page.contains("<h6>leaf ") && !page.contains("<h7"));
    }

    #[test]
    fn flame_graphs_of_a_section_have_names_of_their_own() {
        let graph = || tree(&[("all", None, 0), ("</script>", Some(0), 1_500_000)]);
        let section = Section::new("Flame graphs").flame_graph(graph()).flame_graph(graph());
        let page = page_of(&Report::new("Run").section(section));
        assert!(page.contains("id=\"flame-graphs/flame\"") && page.contains("id=\"flame-graphs/flame2\""));
        assert!(page.contains("1.50 ms in 2 frames"));
        assert!(!page.contains("\"</script>\""));
    }

    #[test]
    fn the_policy_names_the_hash_of_the_one_script_and_nothing_is_loaded() {
        let page = page_of(&Report::new("<b>").fact("machine", "<i>&"));
        assert!(page.contains(&format!("script-src '{}'", assets::REPORT_JS_HASH.trim_end())));
        assert!(page.contains("<title>&lt;b&gt;</title>") && page.contains("<dd>&lt;i&gt;&amp;</dd>"));
        for loading in ["src=", "url(", "@import", "http://", "https://"] {
            let found = page.replace("http://www.w3.org/", "").contains(loading);
            assert!(!found, "{loading}");
        }
    }

    #[test]
    fn a_note_appears_once_in_a_section_and_losses_are_warnings() {
        let lost = || note!(Loss, "3 samples lost; run `stepscope doctor`.");
        let table = || {
            let mut table = Table::new("t", "T", vec![]);
            table.note(lost());
            table
        };
        let inner = Section::new("inner").note(lost()).table(table());
        let page = page_of(&Report::new("r").section(Section::new("outer").note(lost()).table(table()).section(inner)));
        let shown = "<p class=\"note warning\"><b>Warning:</b> 3 samples lost; run <code>stepscope doctor</code>.</p>";
        assert_eq!(page.matches(shown).count(), 1);
        let sections = ["a", "b"].map(|title| Section::new(title).note(lost()));
        let page = page_of(&sections.into_iter().fold(Report::new("r"), Report::section));
        assert_eq!(page.matches(shown).count(), 2, "once in each section");
    }

    #[test]
    fn a_report_without_anything_is_a_page() {
        assert!(page_of(&Report::default()).ends_with("</html>\n"));
    }
}
