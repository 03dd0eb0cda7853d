"""A lexical unit and a full text in FrameNet's XML; the sentences are invented."""

UNIT = """\
<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<?xml-stylesheet type="text/xsl" href="lexUnit.xsl"?>
<lexUnit status="Finished_Initial" POS="V" name="lend.v" ID="1" frame="Lending" frameID="2" totalAnnotated="2"
  xsi:schemaLocation="../schema/lexUnit.xsd" xmlns="http://framenet.icsi.berkeley.edu"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <header>
        <corpus name="BNC2" ID="111"><document description="bncp" ID="412"/></corpus>
        <frame><FE fgColor="FFFFFF" bgColor="FF0000" type="Core" abbrev="Len" name="Lender"/></frame>
    </header>
    <definition>COD: give for a while.</definition>
    <lexeme POS="V" name="lend"/>
    <valences><FERealization total="1"><annoSet ID="31"/></FERealization></valences>
    <subCorpus name="V-other"/>
    <subCorpus name="V-429-s20-np">
        <sentence sentNo="0" aPos="100" ID="21">
            <text>Of course Ann lent Bob a kite. </text>
            <annotationSet cDate="01/01/2003 00:00:00 PST Wed" status="UNANN" ID="30">
                <layer rank="1" name="BNC">
                    <label end="8" start="0" name="AV0"/>
                    <label end="12" start="10" name="NP0"/>
                    <label end="17" start="14" name="VVD"/>
                    <label end="21" start="19" name="NP0"/>
                    <label end="23" start="23" name="AT0"/>
                    <label end="28" start="25" name="NN1"/>
                    <label end="29" start="29" name="PUN"/>
                </layer>
            </annotationSet>
            <annotationSet cDate="01/01/2003 00:00:00 PST Wed" status="MANUAL" ID="31">
                <layer rank="1" name="FE">
                    <label cBy="XYZ" feID="9" bgColor="0000FF" end="28" start="23" name="Theme"/>
                    <label cBy="XYZ" feID="7" bgColor="0000FF" end="12" start="10" name="Lender"/>
                    <label cBy="XYZ" feID="8" bgColor="0000FF" end="21" start="19" name="Borrower"/>
                    <label cBy="XYZ" feID="6" bgColor="0000FF" itype="INI" name="Duration"/>
                </layer>
                <layer rank="2" name="FE"><label feID="5" end="12" start="10" name="Source"/></layer>
                <layer rank="1" name="GF"><label end="12" start="10" name="Ext"/></layer>
                <layer rank="1" name="PT"><label end="12" start="10" name="NP"/></layer>
                <layer rank="1" name="Verb"/>
                <layer rank="1" name="Target"><label cBy="XYZ" end="17" start="14" name="Target"/></layer>
            </annotationSet>
        </sentence>
    </subCorpus>
</lexUnit>
"""

TEXT = """\
<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<fullTextAnnotation xmlns="http://framenet.icsi.berkeley.edu">
    <header>
        <corpus description="Made up" name="I" ID="1"><document description="One" name="one" ID="2"/></corpus>
    </header>
    <sentence corpID="1" docID="2" sentNo="1" paragNo="1" aPos="0" ID="3">
        <text>Zoë picked it up &amp; ran .</text>
        <annotationSet cDate="06/06/2006 02:39:48 PDT Tue" status="UNANN" ID="4">
            <layer rank="1" name="PENN">
                <label end="2" start="0" name="NP"/>
                <label end="9" start="4" name="VVD"/>
                <label end="12" start="11" name="PP"/>
                <label end="15" start="14" name="rp"/>
                <label end="17" start="17" name="cc"/>
                <label end="21" start="19" name="VVD"/>
                <label end="23" start="23" name="sent"/>
            </layer>
            <layer rank="1" name="NER"><label end="2" start="0" name="person"/></layer>
            <layer rank="1" name="WSL"><label end="17" start="17" name="NT"/></layer>
        </annotationSet>
        <annotationSet status="MANUAL" luID="1" luName="pick up.v" frameID="2" frameName="Taking" ID="5">
            <layer rank="1" name="Target">
                <label end="9" start="4" name="Target"/>
                <label end="15" start="14" name="Target"/>
            </layer>
            <layer rank="1" name="FE">
                <label end="2" start="0" name="Agent"/>
                <label end="12" start="11" name="Theme"/>
                <label itype="DNI" name="Source"/>
                <label itype="CNI" name="Place"/>
            </layer>
        </annotationSet>
        <annotationSet status="UNANN" luID="2" luName="run.v" frameID="3" frameName="Self_motion" ID="6">
            <layer rank="1" name="Target"><label end="21" start="19" name="Target"/></layer>
            <layer rank="1" name="FE"/>
        </annotationSet>
    </sentence>
    <sentence corpID="1" docID="2" sentNo="2" paragNo="1" aPos="30" ID="7">
        <text>Yes!</text>
    </sentence>
</fullTextAnnotation>
"""
